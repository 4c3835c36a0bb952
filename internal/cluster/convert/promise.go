package convert

import (
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Promises writes the value of karpv1.AnnotationPods: the UIDs of the pods that a claim is bought for, separated by
// spaces. To the UID of a pod that still runs on a node which is leaving, that of its controller is added after a
// slash: by the time the claim is a node, another pod will have come in its place.
func Promises(pods []*model.Pod) string {
	words := make([]string, len(pods))
	for i, p := range pods {
		words[i] = p.UID
		if p.Node != "" && p.Controller.UID != "" {
			words[i] += "/" + p.Controller.UID
		}
	}
	return strings.Join(words, " ")
}

// promises reads what Promises wrote: the pods, and by their index the controllers, nil when none is named.
func promises(text string) (pods, owners []string) {
	for i, word := range strings.Fields(text) {
		pod, owner, named := strings.Cut(word, "/")
		pods = append(pods, pod)
		if named && owners == nil {
			owners = make([]string, i, 8)
		}
		if owners != nil {
			owners = append(owners, owner)
		}
	}
	return pods, owners
}
