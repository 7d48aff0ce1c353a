# shellcheck shell=sh
# A page in a real browser.  Sourced after lib.sh:  look PAGE CHARTS || finish with a word on why nobody looked
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# Fails if there is no browser, or it does not start here.  In frames as wide as a phone and as a screen: every chart is there and
# fits, no text leaves its picture or runs into another, nothing is wider than the window, the console is silent.  What the frames hold is written into
# the document that they stand in.
look() { # PAGE CHARTS
    [ -n "$browser" ] || return 1
    cat >"$tmp/look.html" <<HTML
<iframe id=w360 src="file://$1" width=360 height=800></iframe><iframe id=w1400 src="file://$1" width=1400 height=800></iframe>
HTML
    cat >>"$tmp/look.html" <<'HTML'
<pre id=said></pre><script>
const ids = list => list.map(s => s.closest('figure').id).join('+') || 0;
onload = () => { for (const w of [360, 1400]) { const d = document.getElementById('w' + w).contentDocument;
  const all = [...d.querySelectorAll('svg')];
  const out = all.filter(s => { const b = s.getBoundingClientRect(); return b.width < 100 || b.height < 40 || b.left < 0 || b.right > w });
  const text = all.filter(s => { const v = s.viewBox.baseVal; return [...s.querySelectorAll('text')].some(t => { const b = t.getBBox(); return !t.hasAttribute('transform') && (b.x < -1 || b.x + b.width > v.width + 1 || b.y + b.height > v.height + 1) }) });
  const meet = all.filter(s => { const r = [...s.querySelectorAll('text')].map(t => t.getBoundingClientRect()); const slack = r.length ? s.getBoundingClientRect().width / 200 : 0;
    return r.some((a, i) => r.some((b, j) => j > i && a.left + slack < b.right && b.left + slack < a.right && a.top + 2 * slack < b.bottom && b.top + 2 * slack < a.bottom)) });
  const cards = [...d.querySelectorAll('.card b')].filter(b => b.scrollWidth > b.clientWidth + 1).length;
  const empty = [...d.querySelectorAll('svg image')].filter(i => !i.getAttribute('href').startsWith('data:image/png;base64,')).length;
  document.getElementById('said').textContent += `width${w} charts=${all.length} out=${ids(out)} clipped=${ids(text)} meeting=${ids(meet)} cards=${cards} empty=${empty} over=${d.documentElement.scrollWidth - d.documentElement.clientWidth};` } }
</script>
HTML
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --allow-file-access-from-files --enable-logging=stderr --v=0 \
        --user-data-dir="$tmp/profile" --dump-dom "file://$tmp/look.html" >"$tmp/dom" 2>"$tmp/console"
    [ -s "$tmp/dom" ] || return 1 # a container without what a browser needs
    grep -o 'width[0-9]* charts[^;]*;' "$tmp/dom" >"$tmp/said"
    for w in 360 1400; do
        check "${1##*/}: every chart fits at $w pixels: $(cat "$tmp/said")" \
            grep -q "width$w charts=$2 out=0 clipped=0 meeting=0 cards=0 empty=0 over=0;" "$tmp/said"
    done
    check "${1##*/}: no error in the console" [ -z "$(grep 'CONSOLE' "$tmp/console")" ]
}
