# Reads one JSON object and nothing else, strictly; prints its plain members as "key value" lines.
# Exit 1 and a reason on stderr: it is not one.
{ text = text $0 "\n" }
END {
    len = length(text); at = 1
    for (i = 1; i < 32; i++) control = control sprintf("%c", i)
    blank()
    if (substr(text, at, 1) != "{") bad("it does not start with {")
    else { value(0); blank(); if (at <= len) bad("something behind the object") }
    exit failed
}
function bad(why) {
    if (!failed) print "not one JSON object: " why " (character " at ")" > "/dev/stderr"
    failed = 1; at = len + 1
    return ""
}
function blank() { while (at <= len && index(" \t\n\r", substr(text, at, 1))) at++ }
function expect(c) { blank(); if (substr(text, at, 1) == c) at++; else bad("no " c) }
function string(  start, c) {
    expect("\""); start = at
    while (at <= len && (c = substr(text, at, 1)) != "\"") {
        if (index(control, c)) return bad("a control character in a string")
        if (c == "\\") { if (substr(text, at, 6) !~ /^\\(["\\\/bfnrt]|u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F])/) return bad("an escape"); at++ }
        at++
    }
    at++
    return substr(text, start, at - 1 - start)
}
function word(re,  part) {
    part = substr(text, at, 40)
    if (match(part, re) != 1) return bad("no value")
    at += RLENGTH
    return substr(part, 1, RLENGTH)
}
function value(depth,  c, key, v) {
    blank(); c = substr(text, at, 1)
    if (c == "\"") return string()
    if (c != "{" && c != "[") return word("^(true|false|null|-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?)")
    at++; blank()
    if (substr(text, at, 1) == (c == "{" ? "}" : "]")) { at++; return "{}" }
    while (!failed) {
        if (c == "{") { blank(); key = string(); expect(":") }
        v = value(depth + 1)
        if (depth == 0) print key " " v
        blank()
        if (substr(text, at, 1) != ",") break
        at++
    }
    expect(c == "{" ? "}" : "]")
    return "{}"
}
