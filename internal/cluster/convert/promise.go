package convert

import "strings"

// reservedWords are those of a text, nil for none.
func reservedWords(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}

// promises reads the values of karpv1.AnnotationPods and karpv1.AnnotationReserved, words of model.Pod.Promise separated by
// spaces: the UIDs of the pods, and by their index those of the controllers, nil when none is named.
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
