package migrate

import "go.yaml.in/yaml/v3"

// reshape changes a value to the content of another, and keeps its formatting where possible: the order of fields,
// their style and their comments. Equal amounts and durations keep their notation. Comments of removed values move
// up.
func reshape(have, want *yaml.Node) *yaml.Node {
	switch {
	case have == nil:
		return want
	case alike(have, want):
		return have
	case have.Kind != want.Kind:
		want.HeadComment = joinComments(comments(have), want.HeadComment)
		return want
	case have.Kind == yaml.MappingNode:
		return reshapeFields(have, want)
	case have.Kind == yaml.SequenceNode:
		return reshapeMembers(have, want)
	}
	want.HeadComment, want.LineComment, want.FootComment = have.HeadComment, have.LineComment, have.FootComment
	return want
}

func reshapeFields(have, want *yaml.Node) *yaml.Node {
	have.Style &^= yaml.FlowStyle
	for _, name := range fields(have) {
		if at(want, name) == nil {
			if lost := comments(take(have, name)); lost != "" {
				have.HeadComment = joinComments(have.HeadComment, lost)
			}
		}
	}
	for _, name := range fields(want) {
		set(have, reshape(at(have, name), at(want, name)), name)
	}
	return have
}

// reshapeMembers returns have with the members of want. It pairs equal members first, then those with the same
// identity, then those without identity by their index.
func reshapeMembers(have, want *yaml.Node) *yaml.Node {
	used := make([]bool, len(have.Content))
	result := make([]*yaml.Node, len(want.Content))
	pair := func(i int, fits func(int) bool) {
		for j := range have.Content {
			if result[i] == nil && !used[j] && fits(j) {
				used[j], result[i] = true, reshape(have.Content[j], want.Content[i])
			}
		}
	}
	for i, member := range want.Content {
		pair(i, func(j int) bool { return alike(have.Content[j], member) })
	}
	for i, member := range want.Content {
		pair(i, func(j int) bool { return identity(member) != "" && identity(have.Content[j]) == identity(member) })
	}
	for i := range want.Content {
		pair(i, func(j int) bool { return i == j && identity(have.Content[j]) == "" })
	}
	for i, member := range want.Content {
		if result[i] == nil {
			result[i] = member
		}
	}
	for j, member := range have.Content {
		if lost := comments(member); !used[j] && lost != "" {
			have.HeadComment = joinComments(have.HeadComment, lost)
		}
	}
	for _, member := range result {
		if member.Kind != yaml.ScalarNode {
			have.Style &^= yaml.FlowStyle
		}
	}
	have.Content = result
	return have
}

// identity returns what identifies a member of a list.
func identity(member *yaml.Node) string {
	for _, field := range []string{"key", "deviceName", "name", "id"} {
		if value := text(at(member, field)); value != "" {
			return field + "=" + value
		}
	}
	return ""
}
