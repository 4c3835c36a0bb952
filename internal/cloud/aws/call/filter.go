package call

import "strings"

// Matches reports whether a value matches a value of an EC2 filter: "*" stands for any characters, "?" for one, and a
// backslash escapes the next character. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
func Matches(pattern, value string) bool {
	if !strings.ContainsAny(pattern, `*?\`) {
		return pattern == value
	}
	// row says which prefixes of the value match the part of the pattern that was processed so far.
	text := []rune(value)
	row := make([]bool, len(text)+1)
	row[0] = true
	escaped := false
	for _, p := range pattern {
		switch {
		case p == '\\' && !escaped:
			escaped = true
			continue
		case p == '*' && !escaped:
			for k := 1; k < len(row); k++ {
				row[k] = row[k] || row[k-1]
			}
		default:
			for k := len(text); k > 0; k-- {
				row[k] = row[k-1] && (p == text[k-1] || p == '?' && !escaped)
			}
			row[0] = false
		}
		escaped = false
	}
	return row[len(text)]
}

// MatchesAny reports whether a value matches one of the values of a filter.
func MatchesAny(patterns []string, value string) bool {
	for _, p := range patterns {
		if Matches(p, value) {
			return true
		}
	}
	return false
}
