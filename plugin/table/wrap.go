package table

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Wrap breaks lines between words so that they fit the width in characters; a width of 0 changes nothing. What
// continues a line is indented by so many characters more than the line. A word that is longer than the width stays
// whole.
func Wrap(text string, width, hang int) string {
	if width <= 0 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		body := strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(body) > width {
			lines[i] = wrapLine(body, width, hang) + line[len(body):]
		}
	}
	return strings.Join(lines, "")
}

func wrapLine(line string, width, hang int) string {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	begin := strings.Repeat(" ", min(indent+hang, width/2))
	var broken []byte
	used, empty := 0, true // of the current line
	for _, word := range strings.SplitAfter(line, " ") {
		n := utf8.RuneCountInString(strings.TrimRight(word, " "))
		if n > 0 && !empty && used+n > width {
			broken = append(append(bytes.TrimRight(broken, " "), '\n'), begin...)
			used, empty = len(begin), true
		}
		broken = append(broken, word...)
		used, empty = used+utf8.RuneCountInString(word), empty && n == 0
	}
	return string(broken)
}
