#!/bin/sh
# make install, then a program of a few lines and the example, which know only the installed header and taut.pc, against the shared
# and against the static library.
. tests/cli/lib.sh
compile() { ${CC:-cc} "$@"; } # CC may be words: ccache gcc
if ! compile --version >/dev/null || ! command -v pkg-config >/dev/null; then
    echo "skipped: no compiler or no pkg-config"
    exit 77
fi
prefix=/opt/somewhere
root=$tmp/root$prefix
make install BUILD="$BUILD" DESTDIR="$tmp/root" PREFIX=$prefix >"$tmp/log" 2>&1
rc=$?
check "make install: $(tail -n 3 "$tmp/log")" [ $rc = 0 ]
version=$(sed -n 's/^#define TAUT_VERSION *"\(.*\)"/\1/p' include/taut.h)
case $version in 0.*) soname=libtaut.so.${version%.*} ;; *) soname=libtaut.so.${version%%.*} ;; esac
for file in bin/taut include/taut.h lib/libtaut.a lib/libtaut.so "lib/$soname" lib/pkgconfig/taut.pc; do
    check "$file is installed" [ -s "$root/$file" ]
done
for page in taut taut-train taut-man; do
    check "$page(1) is installed" [ -s "$root/share/man/man1/$page.1" ]
    command -v groff >/dev/null && check "$page(1) is troff" [ -z "$(groff -man -ww -Tutf8 "$root/share/man/man1/$page.1" 2>&1 >/dev/null)" ]
done
check "taut(1) has every exit code" [ "$(sed -n '/^.SH EXIT/,/^.SH SEE/s/^.fB\([0-9][0-9, ]*\).*/\1/p' "$root/share/man/man1/taut.1" | tr '\n' ' ')" = "0 1 2 3 130, 143 " ]
check "taut(1) prints no backslash" [ -z "$("$TAUT" man | grep '\\e')" ]
command -v groff >/dev/null && check "taut-recipe(5) is troff" [ -z "$(groff -man -ww -Tutf8 "$root/share/man/man5/taut-recipe.5" 2>&1 >/dev/null)" ]
check "taut-recipe(5) has the keys" grep -q '^.fBconstrain.target_lipschitz' "$root/share/man/man5/taut-recipe.5"
for file in taut/recipes/tiny.ini doc/taut/README.md doc/taut/howto/choose_a_norm.md; do
    check "share/$file is installed" [ -s "$root/share/$file" ]
done
check "a page for every command" [ "$(find "$root/share/man" -name 'taut-*.[15]' | wc -l)" = "$("$TAUT" --help | grep -c '^  taut ')" ]
command -v bash >/dev/null && check "bash completes" [ "$(bash -c '. "$1"; COMP_WORDS=(taut cer); COMP_CWORD=1; _taut; echo "${COMPREPLY[*]}"' - \
    "$root/share/bash-completion/completions/taut")" = certify ]
offers() { # WORD...: what bash offers for the last one
    PATH=$(cd "$(dirname "$TAUT")" && pwd):$PATH bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _taut; echo "${COMPREPLY[*]}"' - \
        "$root/share/bash-completion/completions/taut" "$@"
}
if command -v bash >/dev/null; then
    check "norms of certify" [ "$(offers taut certify runs/a --norm "")" = "tokens flat" ]
    check "norms of attack" [ "$(offers taut attack runs/a --norm L)" = "Linf L2 L1" ]
    check "attacks" [ "$(offers taut attack runs/a --attack aa-s)" = aa-standard ]
    check "papers" [ "$(offers taut paper enforced-t)" = enforced-table1 ]
    check "recipes" [ "$(offers taut train recipes/tiny.)" = recipes/tiny.ini ]
    check "keys" [ "$(offers taut train r --set constrain.tar)" = constrain.target_lipschitz= ]
fi
# shellcheck disable=SC2016 # zsh's own words
offers_zsh() { # WORD...: the words among which zsh would choose for the last one, or files
    PATH=$(cd "$(dirname "$TAUT")" && pwd):$PATH zsh -fc 'compadd() { shift; print -- "$@"; [ $# -gt 0 ]; }; _files() { print files; }
        file=$1; shift; words=("$@"); CURRENT=$#; . "$file"' - "$root/share/zsh/site-functions/_taut" "$@"
}
if command -v zsh >/dev/null; then
    check "zsh reads its completion" zsh -n "$root/share/zsh/site-functions/_taut"
    check "zsh: norms" [ "$(offers_zsh taut predict a --norm "")" = "tokens flat" ]
    check "zsh: commands" sh -c 'echo " $1 " | grep -q " predict "' - "$(offers_zsh taut pre)"
    check "zsh: recipes" sh -c 'echo " $1 " | grep -q " recipes/tiny.ini "' - "$(offers_zsh taut train recipes/ti | tr '\n' ' ')"
    check "zsh: files where there are no words" sh -c 'echo "$1" | grep -qx files' - "$(offers_zsh taut nobody x)"
fi
command -v fish >/dev/null && check "fish reads its completion" fish -n "$root/share/fish/vendor_completions.d/taut.fish"
# shellcheck disable=SC2016 # fish's own words
command -v fish >/dev/null && check "fish completes" [ "$(fish -c 'source $argv[1]; complete -C "taut certify x --norm f"' \
    "$root/share/fish/vendor_completions.d/taut.fish" | cut -f1)" = flat ]
check "taut.pc names the prefix it was installed to" grep -q "^prefix=$prefix\$" "$root/lib/pkgconfig/taut.pc"
check "the installed program runs" "$root/bin/taut" info

cat >"$tmp/few.c" <<'EOF'
#include <stdio.h>
#include <taut.h>
int taut_malloc(void); /* a name of the inside is free for a program */
int taut_malloc(void) { return 0; }
int main(void)
{
    return printf("%s[%s]\n", taut_version(), taut_last_error()) < taut_malloc();
}
EOF
printf 'int taut_malloc(void);\nint main(void) { return taut_malloc(); }\n' >"$tmp/inside.c"
flags() { PKG_CONFIG_PATH=$root/lib/pkgconfig pkg-config --define-variable=prefix="$root" "$@" taut; }
check "pkg-config knows the version" [ "$(flags --modversion)" = "$version" ]
san=
nm "$root/lib/libtaut.a" 2>/dev/null | grep -q __asan_init && san=-fsanitize=address,undefined
nm "$root/lib/libtaut.a" 2>/dev/null | grep -q __gcov_init && san=--coverage

# shellcheck disable=SC2046 # flags are words
check "shared: compiles" compile -std=c11 -Wall -Wextra -Wpedantic -Werror $san -o "$tmp/shared" "$tmp/few.c" \
    $(flags --cflags --libs)
check "shared: says '${version}[]'" [ "$(LD_LIBRARY_PATH=$root/lib "$tmp/shared")" = "${version}[]" ]
# shellcheck disable=SC2016 # the program's own words
check "shared: needs $soname" sh -c 'LD_LIBRARY_PATH="$1" ldd "$2" | grep -q "$3 =>"' - "$root/lib" "$tmp/shared" "$soname"
# shellcheck disable=SC2046
check "shared: the inside cannot be called" test -z "$(compile $san -o "$tmp/inside" "$tmp/inside.c" $(flags --cflags --libs) 2>/dev/null && echo linked)"

# shellcheck disable=SC2046
check "the example compiles" compile -std=c11 -Wall -Wextra -Wpedantic -Werror $san -o "$tmp/first" examples/first.c $(flags --cflags --libs)
LD_LIBRARY_PATH=$root/lib "$tmp/first" recipes/tiny.ini "$tmp/first-run" >"$tmp/said" 2>&1
check "the example runs: $(cat "$tmp/said")" grep -Eq '^[0-9]+ weights, loss [0-9.]+, first logit -?[0-9.]+, proved constant [0-9.e+]+ \(norm tokens, l2\)$' "$tmp/said"
check "and says what is wrong" sh -c '! LD_LIBRARY_PATH="$1" "$2" nowhere.ini "$3" 2>&1 | grep -q weights' - "$root/lib" "$tmp/first" "$tmp/x"

# without DESTDIR, in an /etc of its own that knows the prefix's lib: the loader finds the library by itself
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null && cp -a /etc "$tmp/etc" 2>/dev/null; then
    echo "$tmp/pre/lib" >>"$tmp/etc/ld.so.conf"
    # shellcheck disable=SC2016
    check "after make install the loader finds it" unshare -m sh -c 'mount --bind "$1/etc" /etc &&
        make install BUILD="$2" PREFIX="$1/pre" >"$1/log" 2>&1 && [ "$("$1/shared")" = "$3[]" ]' - "$tmp" "$BUILD" "$version"
fi

rm -f "$root"/lib/libtaut.so* # so that -ltaut is the archive
# shellcheck disable=SC2046
check "static: compiles" compile -std=c11 $san -o "$tmp/static" "$tmp/few.c" $(flags --static --cflags --libs)
# shellcheck disable=SC2046
check "static: the inside cannot be called" test -z "$(compile $san -o "$tmp/inside" "$tmp/inside.c" $(flags --static --cflags --libs) 2>/dev/null && echo linked)"
check "static: says '${version}[]'" [ "$("$tmp/static")" = "${version}[]" ]
# shellcheck disable=SC2016
check "static: needs no libtaut" sh -c '! ldd "$1" | grep -q libtaut' - "$tmp/static"

if command -v "${CXX:-c++}" >/dev/null; then
    check "the header is C++ too" "${CXX:-c++}" -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I "$root/include" \
        -x c++ "$tmp/few.c"
fi
finish "install      header, two libraries, taut.pc, program"
