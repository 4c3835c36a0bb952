package offline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// owner is the controller of pods, according to files.
type owner struct{ namespace, kind, name string }

func ownerOf(pod *corev1.Pod) (owner, bool) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return owner{}, false
	}
	return owner{pod.Namespace, ref.Kind, ref.Name}, true
}

// owners finds the workloads that pods belong to.
type owners map[owner]*workload

func (o *objects) owners() owners {
	all := owners{}
	for _, w := range o.workloads {
		all[owner{w.meta.Namespace, w.kind, w.meta.Name}] = w
	}
	return all
}

// vpaUpdates is the annotation of pods whose requests the VerticalPodAutoscaler set when they were created, as it does
// for their successors.
const vpaUpdates = "vpaUpdates"

// noteTemplates records the templates of pods whose requests were reduced while they ran. Manifests seldom have the
// field that says so; it is set on each pod that requests less than its template.
func (o *completion) noteTemplates() {
	all := o.owners()
	o.templates = map[types.UID]convert.Created{}
	for _, p := range o.pods {
		ref := metav1.GetControllerOfNoCopy(p.object)
		if p.live || p.object.Spec.NodeName == "" || ref == nil {
			continue
		}
		untold := len(p.object.ManagedFields) == 0 && p.object.Annotations[vpaUpdates] == ""
		if !untold && !convert.Resized(p.object) {
			continue
		}
		w := all.of(p.object, ref)
		if w == nil {
			continue
		}
		by, own := convert.CreatedAs(&corev1.Pod{Spec: w.template.Spec}), convert.CreatedAs(p.object)
		if by.CPU <= own.CPU && by.Memory <= own.Memory {
			continue
		}
		if ref.UID == "" {
			ref.UID = w.meta.UID
		}
		if untold {
			p.object.ManagedFields = []metav1.ManagedFieldsEntry{{Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "resize"}}
		}
		o.templates[ref.UID] = by
	}
}

// ownedPods returns the pods that each workload has and that its controller counts: those that it controls, directly
// or through its ReplicaSets or Jobs, and those without a controller that it selects. Controllers adopt the latter.
func (o *objects) ownedPods() map[*workload][]*corev1.Pod {
	all := o.owners()
	owned := map[*workload][]*corev1.Pod{}
	var orphans []sourced[*corev1.Pod]
	for _, p := range o.pods {
		ref := metav1.GetControllerOfNoCopy(p.object)
		switch w := all.of(p.object, ref); {
		case ref == nil:
			orphans = append(orphans, p)
		case w.counts(p.object):
			owned[w] = append(owned[w], p.object)
		}
	}
	index, adopted := newPodIndex(orphans), map[*corev1.Pod]bool{}
	for _, w := range slices.SortedStableFunc(slices.Values(o.workloads), compareWorkloads) {
		top := all.top(w)
		for _, pod := range index.selected(w.meta.Namespace, w.selector) {
			if !adopted[pod] && top.counts(pod) && (w.kind != statefulSet || strings.HasPrefix(pod.Name, w.meta.Name+"-")) {
				adopted[pod] = true
				owned[top] = append(owned[top], pod)
			}
		}
	}
	return owned
}

func compareWorkloads(a, b *workload) int {
	return cmp.Or(cmp.Compare(a.meta.Namespace, b.meta.Namespace), cmp.Compare(a.kind, b.kind), cmp.Compare(a.meta.Name, b.meta.Name))
}

// counts reports whether the controller counts the pod: it has not finished, and is not being deleted. A pod of a
// StatefulSet keeps its name until it is gone.
func (w *workload) counts(pod *corev1.Pod) bool {
	return w != nil && !finished(pod) && (pod.DeletionTimestamp == nil || w.kind == statefulSet)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// of returns the workload of the pod's controller, or nil. ReplicaSets of Deployments and Jobs of CronJobs are often
// not in the files: their names contain that of the workload.
func (all owners) of(pod *corev1.Pod, ref *metav1.OwnerReference) *workload {
	if ref == nil {
		return nil
	}
	if w := all[owner{pod.Namespace, ref.Kind, ref.Name}]; w != nil {
		if !w.is(ref) {
			return nil
		}
		return all.top(w)
	}
	switch version, _ := schema.ParseGroupVersion(ref.APIVersion); {
	case ref.Kind == "ReplicaSet" && version.Group == appsv1.GroupName:
		return all[owner{pod.Namespace, "Deployment", deploymentOf(pod, ref.Name)}]
	case ref.Kind == "Job" && version.String() == batchVersion:
		return all[owner{pod.Namespace, "CronJob", cronJobOf(ref.Name)}]
	}
	return nil
}

// top returns the Deployment that controls a ReplicaSet, if it is there; else the workload itself.
func (all owners) top(w *workload) *workload {
	if ref := metav1.GetControllerOfNoCopy(&w.meta); ref != nil && ref.Kind == "Deployment" {
		if above := all[owner{w.meta.Namespace, ref.Kind, ref.Name}]; above != nil && above.is(ref) {
			return above
		}
	}
	return w
}

// is reports whether a reference names the workload: by its UID if the file has it, else by its name.
func (w *workload) is(ref *metav1.OwnerReference) bool {
	theirs, err := schema.ParseGroupVersion(ref.APIVersion)
	ours, _ := schema.ParseGroupVersion(w.version)
	sameGroup := err != nil || ref.APIVersion == "" || theirs.Group == ours.Group
	return ref.Kind == w.kind && ref.Name == w.meta.Name && sameGroup && (w.meta.UID == "" || ref.UID == "" || w.meta.UID == ref.UID)
}

// hashLetters are the letters of the hashes with which controllers name what they create.
const hashLetters = "bcdfghjklmnpqrstvwxz2456789"

// deploymentOf returns the name of the Deployment that would name its ReplicaSet so, or "": the name, and the hash of
// the template, which is a label of its pods.
func deploymentOf(pod *corev1.Pod, replicaSet string) string {
	at := strings.LastIndexByte(replicaSet, '-')
	if at < 1 {
		return ""
	}
	hash, labeled := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if labeled && hash != replicaSet[at+1:] || !labeled && strings.Trim(replicaSet[at+1:], hashLetters) != "" {
		return ""
	}
	return replicaSet[:at]
}

// cronJobOf returns the name of the CronJob that would name its Job so, or "": the name, and the minute of the
// schedule. Jobs that were created manually from a CronJob are not found.
func cronJobOf(job string) string {
	at := strings.LastIndexByte(job, '-')
	if _, err := strconv.ParseUint(job[at+1:], 10, 64); at < 1 || err != nil {
		return ""
	}
	return job[:at]
}

// podIndex holds the pods that are not finished, by namespace, and by namespace and label.
type podIndex map[string][]*corev1.Pod

func newPodIndex(pods []sourced[*corev1.Pod]) podIndex {
	index := podIndex{}
	for _, p := range pods {
		if finished(p.object) {
			continue
		}
		index[p.object.Namespace] = append(index[p.object.Namespace], p.object)
		for name, value := range p.object.Labels {
			at := labelKey(p.object.Namespace, name, value)
			index[at] = append(index[at], p.object)
		}
	}
	return index
}

func labelKey(namespace, name, value string) string {
	return namespace + "\x00" + name + "\x00" + value
}

// selected returns the pods of the namespace that the selector matches; none for nil.
func (index podIndex) selected(namespace string, by *metav1.LabelSelector) []*corev1.Pod {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if by == nil || err != nil {
		return nil
	}
	at := namespace
	for name, value := range by.MatchLabels {
		if candidate := labelKey(namespace, name, value); at == namespace || len(index[candidate]) < len(index[at]) {
			at = candidate
		}
	}
	var pods []*corev1.Pod
	for _, pod := range index[at] {
		if selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods
}
