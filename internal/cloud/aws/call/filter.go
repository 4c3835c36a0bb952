package call

import "strings"

// Matches says whether a value matches a value of a filter of EC2's: "*" stands for any characters, "?" for one, and a backslash
// takes the next character literally. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
func Matches(pattern, value string) bool {
	if !strings.ContainsAny(pattern, `*?\`) {
		return pattern == value
	}
	// One row of the table of which prefixes of the value the pattern so far matches.
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

// MatchesAny says whether a value matches one of the values of a filter.
func MatchesAny(patterns []string, value string) bool {
	for _, p := range patterns {
		if Matches(p, value) {
			return true
		}
	}
	return false
}
