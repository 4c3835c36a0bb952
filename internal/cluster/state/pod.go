package state

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// converted is the state of a pod in the builder.
type converted struct {
	uid, version string
	disposition  convert.Disposition
	nominated    bool
	leaving      bool
	// daemon is the shape that the pod is counted in among the pods of its DaemonSet, nil for other pods.
	daemon *convert.DaemonShape
	// workload is that which the pod counts for, "" for none. known says that it needs no virtual pod (replicas.go).
	workload types.UID
	known    bool
	// controller is that whose new pods the pod counts for, "" for none (created.go).
	controller types.UID
}

// current reports whether the builder has the current state of the pod. Deletion is compared separately, because this
// controller's own deletion has no version.
func (t *converted) current(pod Object) bool {
	version := pod.GetResourceVersion()
	return version != "" && t.version == version && t.uid == string(pod.GetUID()) && t.leaving == (pod.GetDeletionTimestamp() != nil)
}

// sight is the entry of a pod during its conversion. pod is nil if there is none.
type sight struct {
	*entry
	pod *corev1.Pod
}

// podSet holds the conversions of pods.
type podSet struct {
	*dependencies
	daemons  *daemonSets
	replicas *replicas
	virtuals *virtuals
	// created holds what is known of the controllers of pods (created.go).
	created map[types.UID]*creation
	// delayed holds the pods for which no node may be launched before a time.
	delayed map[types.NamespacedName]time.Time
}

func (p *podSet) apply(key types.NamespacedName, e *entry) {
	if e.object == nil || !e.converted.current(e.object) {
		depended := p.sync(key, e, false)
		p.reconvertSharers(key, append(depended, p.dependsOn[key]...))
	}
}

// sync updates a pod in the builder. again says that the pod itself is unchanged, but an object that it depends on
// changed. It returns what the pod depended on before.
func (p *podSet) sync(key types.NamespacedName, at *entry, again bool) []Ref {
	e, before := sight{at, at.pod()}, at.converted
	e.converted = converted{}
	defer func() {
		e.converted.daemon = p.daemons.countPod(key.Namespace, before.daemon, e.pod)
		p.replicas.count(key, before, e)
	}()
	var spec model.PodSpec
	var depends []Ref
	if pod := e.pod; pod != nil {
		spec, e.converted.disposition, depends = p.convertPod(pod)
		if e.converted.disposition == convert.Pending && p.delay(key, pod) {
			e.converted.disposition = convert.Ignore
		}
		e.converted.uid, e.converted.version = string(pod.UID), pod.ResourceVersion
		e.converted.nominated, e.converted.leaving = spec.Nominated != "", pod.DeletionTimestamp != nil
	}
	p.reportDeparture(before, e)
	if before.disposition != convert.Ignore && (e.converted.disposition == convert.Ignore || before.uid != e.converted.uid) {
		p.builder.DeletePod(before.uid)
	}
	siblings := p.noteCreation(key, before, e, &spec)
	if e.converted.disposition != convert.Ignore {
		p.builder.UpsertPod(spec)
	}
	p.recordRejection(key, spec.Rejected, e.converted.disposition)
	change := podChange(before, e.converted)
	if again && e.converted.disposition == convert.Pending {
		change |= PodsPending
	}
	p.notify(change)
	depended := p.update(key, depends)
	for _, sibling := range siblings {
		p.sync(sibling, p.objects[Pods][sibling], false)
	}
	return depended
}

// reportDeparture reports a pod that was on a node and has ended, or is being preempted.
func (p *podSet) reportDeparture(before converted, e sight) {
	pod := e.pod
	if pod == nil || before.disposition != convert.Bound || before.uid != string(pod.UID) {
		return
	}
	if _, gone := convert.Departed(pod, p.at); gone {
		p.news.Departed = append(p.news.Departed, pod)
	}
}

// recordRejection records a pending pod that is rejected; a pod that opted out is not recorded.
func (p *podSet) recordRejection(key types.NamespacedName, why *model.Rejection, disposition convert.Disposition) {
	if disposition != convert.Pending || why == nil || why.Silent {
		if p.rejected.counts[Pods.String()] > 0 { // else the name need not be made, for each event of each pod
			p.rejected.remove(objectKey{Pods.String(), key.String()})
		}
		return
	}
	p.rejected.add(RejectedObject{Kind: Pods.String(), Name: key.String(), Why: *why})
}

// podChange returns the change that subscribers see when the state of a pod changes.
func podChange(before, after converted) Change {
	same := before.uid == after.uid
	var change Change
	if after.disposition == convert.Pending &&
		(!same || before.disposition != convert.Pending || before.nominated && !after.nominated) {
		change |= PodsPending
	}
	if before.disposition != after.disposition && (before.disposition == convert.Bound || after.disposition == convert.Bound) ||
		after.disposition == convert.Bound && (!same || before.leaving != after.leaving) {
		change |= PodsMoved
	}
	return change
}

// delay reports whether it is too early to launch a node for the pod. Advance converts the pod again when it no longer is.
func (p *podSet) delay(key types.NamespacedName, pod *corev1.Pod) bool {
	until := p.vocabulary.Pods.PlannedFrom(pod)
	if !until.After(p.at) {
		return false
	}
	p.delayed[key] = until
	p.news.wake(until)
	return true
}

// release converts the pods again whose delay is over.
func (p *podSet) release() {
	var due []types.NamespacedName
	for key, until := range p.delayed {
		if until.After(p.at) {
			p.news.wake(until)
			continue
		}
		due = append(due, key)
		delete(p.delayed, key)
	}
	slices.SortFunc(due, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range due {
		if e := p.objects[Pods][key]; e != nil {
			p.sync(key, e, false)
		}
	}
}
