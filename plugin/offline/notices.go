package offline

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// notices describe annotations that may be misunderstood. Objects with the same annotation share a line that names
// the first of them.
func (o *Manifests) notices() []string {
	var n notices
	for _, p := range o.pods {
		if !karpv1.EndedPod(p.object) {
			n.pod(p.object)
		}
	}
	for _, f := range o.nodes {
		if text := f.object.Annotations[karpv1.AnnotationDoNotDisrupt]; text != "" && text != "true" && text != "false" {
			n.add("node", f.object.Name, fmt.Sprintf("annotation %s is %q, want true on a node; it is ignored", karpv1.AnnotationDoNotDisrupt, text))
		}
	}
	for _, p := range o.pools {
		_, problems := karpv1.ParseRepairRules(p.object.Annotations)
		for _, problem := range problems {
			n.add("pool", p.object.Name, problem.Error()+"; it is ignored")
		}
	}
	return n.lines()
}

// NothingPending explains an empty answer: the verb plans for pods without a node.
func (o *Manifests) NothingPending() string {
	assigned, ended := 0, 0
	for _, p := range o.pods {
		switch {
		case karpv1.EndedPod(p.object):
			ended++
		case p.object.Spec.NodeName != "":
			assigned++
		}
	}
	return fmt.Sprintf("no pod is pending, so nothing is launched; pods read: %d, of which bound: %d, finished: %d",
		len(o.pods), assigned, ended)
}

// notices holds messages in the order in which they occurred, and their subjects.
type notices struct {
	order []string
	about map[string]*subject
}

// subject is the first object that a message concerns, and the number of further ones.
type subject struct {
	kind, name string
	more       int
}

func (n *notices) add(kind, name, message string) {
	if s := n.about[kind+message]; s != nil {
		s.more++
		return
	}
	if n.about == nil {
		n.about = map[string]*subject{}
	}
	n.about[kind+message] = &subject{kind: kind, name: name}
	n.order = append(n.order, kind+message)
}

func (n *notices) lines() []string {
	lines := make([]string, len(n.order))
	for i, at := range n.order {
		s := n.about[at]
		who := s.kind + " " + s.name
		if s.more > 0 {
			who += fmt.Sprintf(" and %d more", s.more)
		}
		lines[i] = who + ": " + at[len(s.kind):]
	}
	return lines
}

func (n *notices) pod(pod *corev1.Pod) {
	text, there := pod.Annotations[karpv1.AnnotationDoNotDisrupt]
	if protection, valid := karpv1.ProtectionOf(pod); there && !valid && text != "false" {
		is := "it is ignored"
		if protection.Forever {
			is = "it exceeds the longest duration, so it protects forever"
		}
		n.add("pod", key(pod), fmt.Sprintf("annotation %s is %q, want true or a duration such as 30m; %s",
			karpv1.AnnotationDoNotDisrupt, text, is))
	}
	for _, problem := range convert.DelayProblems(pod) {
		n.add("pod", key(pod), problem.Error()+"; it is ignored")
	}
	if text, there := pod.Annotations[karpv1.AnnotationPodDeletionCost]; there {
		if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			n.add("pod", key(pod), fmt.Sprintf("annotation %s is %q, want an integer of 32 bits, such as -100",
				karpv1.AnnotationPodDeletionCost, text))
		}
	}
}

// DaemonsAside returns lines about DaemonSets that the last decision did not consider.
func (o *Manifests) DaemonsAside() []string {
	var lines []string
	for _, d := range o.aside {
		lines = append(lines, fmt.Sprintf("DaemonSet %s/%s is set aside: %s: %s", d.Namespace, d.Name, d.Why.Field, d.Why.Reason))
	}
	return lines
}

// Notes returns lines about objects that are ignored, about doubtful values, and about what the answer assumes.
func (o *Manifests) Notes() []string {
	var lines []string
	for _, kind := range o.ignored() {
		lines = append(lines, "skipped "+kind)
	}
	lines = slices.Concat(lines, o.warned.lines(), o.notices(), o.missingLines(), o.assumed)
	if denied := o.Denied(); denied != "" {
		lines = append(lines, denied)
	}
	return lines
}
