package convert

import "strings"

// reservedWords returns the words of a text, nil for none.
func reservedWords(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}

// promises parses the values of karpv1.AnnotationPods and karpv1.AnnotationReserved, entries of model.Pod.Promise
// separated by spaces. It returns the UIDs of the pods, and by their index those of the controllers, nil if there are
// none.
func promises(text string) (pods, owners []string) {
	for i, word := range strings.Fields(text) {
		pod, owner, named := strings.Cut(word, "/")
		pods = append(pods, pod)
		if named && owners == nil {
			owners = make([]string, i, max(8, i+1))
		}
		if owners != nil {
			owners = append(owners, owner)
		}
	}
	return pods, owners
}
