package migrate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file parses the command line of a Cluster Autoscaler.

// isScaler reports whether a word of a command line is the program.
func isScaler(word string) bool {
	return word == "cluster-autoscaler" || strings.HasSuffix(word, "/cluster-autoscaler")
}

// scalerFlags parses a command line: --name=value, --name value and --name. The result contains all values by name.
// It adds notes on what cannot be parsed. Flags may be written with underscores.
func scalerFlags(words []string, note func(field, format string, arguments ...any)) map[string][]string {
	words = unwrap(words, note)
	flags := map[string][]string{}
	for n := 0; n < len(words); n++ {
		name, value, given := strings.Cut(strings.TrimLeft(words[n], "-"), "=")
		name = strings.ReplaceAll(name, "_", "-")
		next := ""
		if n+1 < len(words) && !strings.HasPrefix(words[n+1], "-") {
			next = words[n+1]
		}
		switch {
		case !strings.HasPrefix(words[n], "-"):
			if n > 0 { // the first is the program
				note("", "the command line contains %q, an unknown argument; ignored", words[n])
			}
			continue
		case given:
		case next != "" && !scalerFlagTable[name].isSwitch:
			value = next
			n++
		default:
			value = "true"
		}
		if strings.Contains(value, "$") {
			note("--"+name, "is %s, a variable with an unknown value; ignored", value)
			continue
		}
		flags[name] = append(flags[name], value)
	}
	return flags
}

var shell = regexp.MustCompile(`(^|/)(ba|da|a|k|z)?sh$`)

// unwrap returns the command line that a shell runs, if there is one.
func unwrap(words []string, note func(field, format string, arguments ...any)) []string {
	if len(words) == 0 || !shell.MatchString(words[0]) {
		return words
	}
	for _, script := range words[1:] {
		inner := shellWords(script)
		if at := slices.IndexFunc(inner, isScaler); at >= 0 {
			inner = inner[at:]
			if end := slices.IndexFunc(inner, func(word string) bool { return strings.ContainsAny(word, ";|&<>") }); end >= 0 {
				note("", "the script continues with %q after the command line; ignored", strings.Join(inner[end:], " "))
				inner = inner[:end]
			}
			return inner
		}
	}
	note("", "the script that starts the Cluster Autoscaler cannot be parsed; its flags are ignored; set them in command and args")
	return nil
}

// shellWords returns the words of a script. Quotes join them, a backslash continues a line, and operators are
// separate words.
func shellWords(script string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	open := false
	end := func() {
		if open {
			words = append(words, word.String())
			word.Reset()
			open = false
		}
	}
	for _, r := range strings.ReplaceAll(script, "\\\n", " ") {
		switch {
		case quote == r:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t':
			end()
		case r == '\n':
			end()
			if len(words) > 0 {
				words = append(words, ";")
			}
		case strings.ContainsRune(";|&<>", r):
			end()
			words = append(words, string(r))
		default:
			open = true
			word.WriteRune(r)
		}
	}
	end()
	for len(words) > 0 && words[len(words)-1] == ";" {
		words = words[:len(words)-1]
	}
	return words
}

// bounds reads the minimum and maximum sizes of groups from --nodes=min:max:name. Those of several entries for one
// group are added.
func (m *migration) bounds(groups []*nodeGroup) {
	type bound struct{ least, most int }
	bounds := map[*nodeGroup]bound{}
	for _, value := range m.scaler.flags["nodes"] {
		parts := strings.SplitN(value, ":", 3)
		if len(parts) < 3 {
			m.scaler.noteFlag("--nodes", "is %s, want MINIMUM:MAXIMUM:NAME; ignored", value)
			continue
		}
		least, wrong := strconv.Atoi(parts[0])
		most, err := strconv.Atoi(parts[1])
		if err != nil || most < 0 {
			m.scaler.noteFlag("--nodes", "is %s, want an integer as maximum size; ignored", value)
			continue
		}
		if wrong != nil || least < 0 {
			m.scaler.noteFlag("--nodes", "is %s, want an integer as minimum size; treated as 0", value)
			least = 0
		}
		g := groupOf(parts[2], groups)
		if g == nil {
			m.scaler.noteFlag("--nodes", "is %s, and the input contains no group with this name; ignored", value)
			continue
		}
		g.clouds = append(g.clouds, parts[2][strings.LastIndexByte(parts[2], '/')+1:])
		bounds[g] = bound{bounds[g].least + least, bounds[g].most + most}
	}
	for g, b := range bounds {
		g.least, g.most = b.least, b.most
	}
}

// noteFlag adds a note on a flag. Without a Deployment there are no flags.
func (a *autoscaler) noteFlag(flag, format string, arguments ...any) {
	if a.item != nil {
		a.note(Advice, flag, format, arguments...)
	}
}

// groupOf returns the group with a name in the cloud: its own name, or one that eksctl (...-nodegroup-NAME-...), EKS
// (eks-NAME-uuid), kops (NAME.cluster) or Google (.../instanceGroups/NAME) derives from it. The longest match counts:
// web is not web-large.
func groupOf(name string, groups []*nodeGroup) *nodeGroup {
	name = objectName(name[strings.LastIndexByte(name, '/')+1:])
	var found *nodeGroup
	for _, g := range groups {
		managed, isManaged := strings.CutPrefix(name, "eks-"+g.name+"-")
		_, behind, isEksctl := strings.Cut(name+"-", "-nodegroup-"+g.name+"-")
		switch {
		case name == g.name:
			return g
		case isManaged && uuid.MatchString(managed), isEksctl && !strings.Contains(behind, "-nodegroup-"), strings.HasPrefix(name, g.name+"."):
			if found == nil || len(g.name) > len(found.name) {
				found = g
			}
		}
	}
	return found
}

// uuid matches the suffix that EKS adds to the name of a group.
var uuid = regexp.MustCompile(`^[0-9a-f]+(-[0-9a-f]+)*$`)
