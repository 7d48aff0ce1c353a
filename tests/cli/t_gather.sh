#!/bin/sh
# tools/gather_text on two packages made here: English paragraphs of pages and manuals once each, no code, no other language, the same
# bytes again.
. tests/cli/lib.sh
for tool in dpkg-deb python3; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
paragraphs() { # BEFORE BEHIND LETTER: 400 of them, each with letters of its own
    awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN { for (i = 0; i < 400; i++) { w = sprintf("%c%c%s", 97 + i % 26, 97 + int(i / 26), c)
        printf "%sThe %s of this house is not what it was when we had been in the %s for a year, and you can see that.%s\n", a, w, w, b } }'
}
package() { # NAME: of what lies in $tmp/NAME
    mkdir -p "$tmp/$1/DEBIAN" "$tmp/debs"
    printf 'Package: %s\nVersion: 1:2-3\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: text\n' "$1" >"$tmp/$1/DEBIAN/control"
    dpkg-deb -b "$tmp/$1" "$tmp/debs/$1_1%3a2-3_all.deb" >/dev/null 2>&1
}
mkdir -p "$tmp/one/usr/share/doc/one" "$tmp/one/usr/share/man/man1" "$tmp/two/usr/share/doc/two/html/de" "$tmp/few/usr/share/doc/few"
{ echo "<html><head><title>x</title></head><body><pre>int the_of_and = to_a(in_is);</pre>"; paragraphs "<p><b>" "</b> &amp; so on</p>" q; } \
    >"$tmp/one/usr/share/doc/one/index.html"
printf '.TH one 1\n.SH NAME\none\n.PP\nIt is one of the\n.B manuals\nthat you have when all the others are not there for you to be read,\nand it may be long: there are many words in it which no one would have used but for the size that a document must have,\nand which are here so that it has it.\n' |
    gzip >"$tmp/one/usr/share/man/man1/one.1.gz"
paragraphs "" " & so on
" q >"$tmp/two/usr/share/doc/two/again.txt"
paragraphs "So it was: " "
" z >"$tmp/two/usr/share/doc/two/new.txt"
paragraphs "" "
" x >"$tmp/two/usr/share/doc/two/html/de/other.txt"
echo "This is the text of a package that has not much of it, and so it is left out of the whole." >"$tmp/few/usr/share/doc/few/a.txt"
for name in one two few; do check "package $name" package $name; done
printf 'two\n# a remark\none 1:2-3 5\n' >"$tmp/names"
check "gathers" tools/gather_text "$tmp/names" "$tmp/text" "$tmp/debs"
check "every paragraph once" [ "$(grep -c "^[TS]" "$tmp/text")" = 800 ]
check "marks are gone" grep -q "^The aaq of this house is not .* you can see that. & so on$" "$tmp/text"
check "a manual too" grep -q "^It is one of the manuals that you have" "$tmp/text"
check "code is not there" sh -c "! grep -q the_of_and '$tmp/text'"
check "nor what lies under another language" sh -c "! grep -q aax '$tmp/text'"
check "names and versions" [ "$(cut -d ' ' -f 1,2 "$tmp/text.packages" | tr '\n' ' ')" = "one 1:2-3 two 1:2-3 " ]
echo few >>"$tmp/names"
tools/gather_text "$tmp/names" "$tmp/again" "$tmp/debs" >"$tmp/said" 2>/dev/null
check "a package with little in it changes nothing" cmp -s "$tmp/text" "$tmp/again"
check "it says the hash" grep -q "SHA-256 $(sha256sum <"$tmp/text" | cut -d ' ' -f 1)" "$tmp/said"
finish "gather       a text of two packages"
