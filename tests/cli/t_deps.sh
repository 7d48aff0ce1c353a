#!/bin/sh
# A person who is not root, on a machine without the libraries: tools/deps says in one line what to install and exits 1, with
# and without apt-get, and tries nothing itself.  With everything there it says nothing.
. tests/cli/lib.sh
bin=$tmp/bin
mkdir "$bin"
for tool in sh id sed make pkg-config; do
    path=$(command -v $tool) || { echo "skipped: no $tool"; exit 77; }
    ln -s "$path" "$bin/$tool"
done
# the compiler that is here, where no library can be linked
cat >"$bin/cc" <<SH
#!/bin/sh
for word; do case \$word in -l*) exit 1 ;; esac; done
PATH=$PATH exec ${CC:-cc} "\$@"
SH
chmod 755 "$tmp" "$bin" "$bin/cc"
someone() { # COMMAND...: not as root
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}
person() { someone env -i PATH="$bin" CC="$bin/cc" TMPDIR=/tmp sh -s "$@" <tools/deps; }
if ! someone test -x "$bin/cc"; then echo "skipped: no other user, or none who can read $tmp"; exit 77; fi

libraries="libopenblas-dev libcjson-dev libinih-dev libkissfft-dev libunistring-dev libpng-dev libturbojpeg0-dev zlib1g-dev"
refuse "without apt-get" "^taut needs: $libraries flint\. Please install these" person
# apt-get without sudo: the command that root may type, in names that it knows
printf '#!/bin/sh\necho called >>"%s/called"\n' "$tmp" >"$bin/apt-get"
chmod 755 "$bin/apt-get"
refuse "without sudo" "^taut needs: $libraries libflint-dev\. Run as root: apt-get install $libraries libflint-dev$" person
printf '#!/bin/sh\nexit 0\n' >"$bin/apt-cache" # it knows every package, so Arb's own
chmod 755 "$bin/apt-cache"
refuse "Arb apart from FLINT" "Run as root: apt-get install $libraries libflint-dev libflint-arb-dev$" person
check "nothing was tried" [ ! -e "$tmp/called" ]
printf '#!/bin/sh\nexit 1\n' >"$bin/cc"
refuse "without a compiler" "^taut needs: gcc libc6-dev $libraries" person
printf '#!/bin/sh\nexit 0\n' >"$bin/cc"
check "with everything there" person
cp "$tmp/check.log" "$tmp/said"
check "it says nothing" [ ! -s "$tmp/said" ]
finish "deps: $checks checks"
