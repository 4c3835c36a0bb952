package table

import "strings"

// Markdown returns a table of GitHub Flavored Markdown (https://github.github.com/gfm/#tables-extension-). Titles and
// cells are text: see Escape. Columns for which number returns true are right-aligned.
func Markdown(titles []string, number func(column int) bool, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + Escape(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(titles)
	for i := range titles {
		if number(i) {
			b.WriteString("| ---: ")
		} else {
			b.WriteString("| --- ")
		}
	}
	b.WriteString("|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// Escape returns a text as Markdown shows it, within a line: nothing of it is markup, a link, HTML, mathematics or an
// emoji. A word joiner (U+2060) follows "@" and "#", so that no user is notified and no issue referred to. Line breaks
// and control characters become blanks.
func Escape(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029:
			b.WriteByte(' ')
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@' || r == '#':
			b.WriteString("\\" + string(r) + "\u2060")
		case strings.ContainsRune("\\`*_[]|~$!", r),
			r == ':' && i+1 < len(text) && !strings.ContainsRune(" 0123456789", rune(text[i+1])): // as in a URL
			b.WriteString("\\" + string(r))
		case r == '.' && i >= 3 && strings.EqualFold(text[i-3:i], "www"):
			b.WriteString("\\.")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
