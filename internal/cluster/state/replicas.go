package state

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// Pods that a workload has asked for are planned before they exist. A controller of Kubernetes needs seconds to create a
// thousand pods, and kube-scheduler as long to find them unschedulable; the number is known at once.
//
//	ReplicaSet, StatefulSet, Job --more pods asked--> scaling --no pod missing, or none came for a while--> as before
//	                                                     |
//	                                    one virtual pod for each missing pod
//
// A pod is missing until kube-scheduler has considered it: then it is pending or bound in the snapshot. The virtual pods
// are copies of a pod that the workload has: it shows what admission makes of the template. A workload without any pod has
// no virtual ones, so quotas and webhooks that stop all pods launch no node. Virtual pods for which no pod comes within
// replicaPatience are removed, and those of the next scale-up of the workload wait (package pause).
//
// Invariant: the virtual pods of a snapshot, and the pods that kube-scheduler has considered, are never more than the
// workload asks for: both are counted under the store's lock, when the snapshot is made.

const (
	// replicaPatience is how long virtual pods are kept while the workload creates no pod.
	replicaPatience = 2 * time.Minute
	// mostReplicas is the maximum number of virtual pods of all workloads together.
	mostReplicas = 10_000
)

// replicas holds the workloads that have pods, and those that ask for some.
type replicas struct {
	*dependencies
	workloads map[types.UID]*workload
	named     map[Ref]types.UID
	// scaling are the workloads with a scale-up in progress. virtual counts their virtual pods.
	scaling map[types.UID]*workload
	virtual int
}

func newReplicas(d *dependencies) *replicas {
	return &replicas{dependencies: d, workloads: map[types.UID]*workload{}, named: map[Ref]types.UID{}, scaling: map[types.UID]*workload{}}
}

// workload is a ReplicaSet, StatefulSet or Job.
type workload struct {
	uid types.UID
	// at identifies the object, and scale is what it asks for; both are zero while it is not watched or gone.
	at    Ref
	scale convert.Scale
	// pods counts the pods that exist, known those that need no virtual pod. newest is one of those created last.
	pods, known int
	newest      types.NamespacedName
	// scaleUp is the scale-up in progress, nil if there is none.
	scaleUp *scaleUp
	pause   pause.Pause
}

// scaleUp is the time from a workload's request for more pods until it has them.
type scaleUp struct {
	// generation is that of the workload which began it. began is zero before the first snapshot or question whether pods of
	// it are awaited, progressed before the first snapshot.
	generation        int64
	began, progressed time.Time
	// moved says that more pods are known than ever in this scale-up, at most most, since the last snapshot: pods that fail
	// and are created again are no progress. arrived says that a pod was created, and
	// copied that the virtual pods are copies of such a pod.
	moved, arrived, copied bool
	most                   int
	// virtual holds the UIDs of the virtual pods by ordinal.
	virtual map[int]string
}

func (r *replicas) of(uid types.UID) *workload {
	w := r.workloads[uid]
	if w == nil {
		w = &workload{uid: uid}
		r.workloads[uid] = w
	}
	return w
}

// forget removes a workload that is gone, together with its pods.
func (r *replicas) forget(w *workload) {
	if w.pods == 0 && w.at == (Ref{}) {
		r.endScaleUp(w)
		delete(r.workloads, w.uid)
	}
}

// apply updates what a workload asks for.
func (r *replicas) apply(at Ref, e *entry) {
	scale, scales := convert.ScaleOf(e.object)
	if !r.config.Replicas || !scales && r.named[at] == "" {
		return
	}
	if before := r.workloads[r.named[at]]; before != nil && (!scales || before.uid != e.object.GetUID()) {
		before.at, before.scale = Ref{}, convert.Scale{}
		delete(r.named, at)
		r.forget(before)
	}
	if !scales {
		return
	}
	w := r.of(e.object.GetUID())
	grew := scale.Asked > w.scale.Asked
	w.at, w.scale, r.named[at] = at, scale, w.uid
	if !grew || scale.Failing || w.known >= scale.Asked {
		return
	}
	if w.scaleUp == nil {
		w.scaleUp = &scaleUp{generation: scale.Generation, virtual: map[int]string{}}
		r.scaling[w.uid] = w
	}
	w.scaleUp.moved, w.scaleUp.arrived, w.scaleUp.copied, w.scaleUp.most = true, false, false, w.known
	r.notify(ReplicasAsked)
}

// workloadOf returns the workload that the pod counts for, "" for none.
func workloadOf(pod *corev1.Pod) (uid types.UID, finished bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return "", false
	}
	switch group, _, _ := strings.Cut(owner.APIVersion, "/"); {
	case group == appsv1.GroupName && (owner.Kind == ReplicaSets.String() || owner.Kind == StatefulSets.String()):
		return owner.UID, false
	case group == "batch" && owner.Kind == Jobs.String():
		return owner.UID, true
	}
	return "", false
}

// considered reports whether the pod needs no virtual pod in its place: kube-scheduler has considered it, or scheduling
// gates keep it. finished says that pods that have ended count as well.
func considered(pod *corev1.Pod, finished bool) bool {
	switch {
	case pod.DeletionTimestamp != nil:
		return false
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return finished
	case pod.Spec.NodeName != "":
		return true
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// count counts the pod for its workload. before is the state of the pod of that name before.
func (r *replicas) count(key types.NamespacedName, before converted, e sight) {
	if !r.config.Replicas {
		return
	}
	now := &e.converted
	created := false
	if pod := e.pod; pod != nil {
		uid, finished := workloadOf(pod)
		now.workload, now.known = uid, uid != "" && considered(pod, finished)
		created = before.uid != string(pod.UID)
	}
	if before.workload == now.workload && before.known == now.known && !created {
		return
	}
	if now.workload != "" {
		r.add(r.of(now.workload), key, now.known, created)
	}
	if before.workload != "" {
		r.drop(r.of(before.workload), key, before.known, now.workload == "")
	}
}

func (r *replicas) add(w *workload, key types.NamespacedName, known, created bool) {
	w.pods++
	if known {
		w.known++
	}
	if created || w.newest == (types.NamespacedName{}) {
		w.newest = key
	}
	if up := w.scaleUp; up != nil {
		if created && !up.arrived {
			r.notify(ReplicasAsked) // it can be copied
		}
		up.arrived = up.arrived || created
		if w.known > up.most {
			up.moved, up.most = true, w.known
		}
	}
}

func (r *replicas) drop(w *workload, key types.NamespacedName, known, gone bool) {
	w.pods--
	if known {
		w.known--
	}
	if gone && w.newest == key {
		w.newest = types.NamespacedName{}
	}
	r.forget(w)
}

// missing returns the number of pods that the workload is about to create.
func (w *workload) missing() int {
	missing := max(0, w.scale.Asked-w.known)
	if w.scale.OneByOne {
		return min(missing, 1)
	}
	return missing
}

// awaited is State.Awaited.
func (r *replicas) awaited(now time.Time, within time.Duration) bool {
	some := false
	for _, w := range r.scaling {
		if w.pods > 0 || w.scale.Failing || w.missing() == 0 || w.pause.Active(now) {
			continue
		}
		if w.scaleUp.began.IsZero() {
			w.scaleUp.began = now
		}
		some = some || now.Sub(w.scaleUp.began) < within
	}
	return some
}

// plan makes the virtual pods of the workloads agree with their pods.
func (r *replicas) plan(now time.Time) {
	for _, uid := range slices.Sorted(maps.Keys(r.scaling)) {
		w := r.scaling[uid]
		up := w.scaleUp
		if up.began.IsZero() {
			up.began = now
		}
		if up.moved {
			up.progressed, up.moved = now, false
		}
		missing := w.missing()
		switch {
		case missing == 0 || w.pause.Active(now):
			r.endScaleUp(w)
		case w.scale.Failing || now.Sub(up.progressed) > replicaPatience:
			why := fmt.Sprintf("%d of %d pods were not created", missing, w.scale.Asked)
			w.pause = w.pause.Fail(up.began, now, 0, why)
			r.news.Uncreated = append(r.news.Uncreated, Uncreated{w.at.Kind.String(), w.at.Key, why, w.pause.Until})
			r.endScaleUp(w)
		default:
			r.set(w, missing)
		}
	}
}

// endScaleUp removes the virtual pods of the workload.
func (r *replicas) endScaleUp(w *workload) {
	if w.scaleUp == nil {
		return
	}
	r.remove(w, nil)
	delete(r.scaling, w.uid)
	w.scaleUp = nil
}

// remove removes the virtual pods of the workload, apart from those with the given ordinals, which are sorted.
func (r *replicas) remove(w *workload, stay []int) {
	for ordinal, uid := range w.scaleUp.virtual {
		if _, stays := slices.BinarySearch(stay, ordinal); !stays {
			r.builder.DeletePod(uid)
			delete(w.scaleUp.virtual, ordinal)
			r.virtual--
		}
	}
}

// set makes the virtual pods of the workload agree with the number of missing pods.
func (r *replicas) set(w *workload, missing int) {
	up := w.scaleUp
	if up.arrived && !up.copied {
		r.remove(w, nil)
		up.copied = true
	}
	stay := r.ordinals(w, min(missing, mostReplicas-r.virtual+len(up.virtual)))
	r.remove(w, stay)
	if len(up.virtual) == len(stay) {
		return
	}
	pattern := r.patternOf(w)
	if pattern == nil {
		return
	}
	var spec *model.PodSpec
	for _, ordinal := range stay {
		if up.virtual[ordinal] != "" {
			continue
		}
		if spec == nil || w.scale.Ordinals || namesVolumes(pattern) {
			if spec = r.spec(w, pattern, ordinal); spec == nil {
				return
			}
		}
		one := *spec
		one.Name, one.UID = w.replicaName(ordinal), w.replicaUID(ordinal)
		r.builder.UpsertPod(one)
		up.virtual[ordinal] = one.UID
		r.virtual++
	}
}

// patternOf returns a pod of the workload, nil if it has none.
func (r *replicas) patternOf(w *workload) *corev1.Pod {
	if pod := r.pod(w.newest); pod != nil || w.pods == 0 {
		return pod
	}
	for key, e := range r.objects[Pods] {
		if e.converted.workload == w.uid && (w.newest.Name == "" || key.Name < w.newest.Name) {
			w.newest = key
		}
	}
	return r.pod(w.newest)
}

// ordinals returns the ordinals of n missing pods.
func (r *replicas) ordinals(w *workload, n int) []int {
	list := make([]int, 0, max(n, 0))
	for i := 0; len(list) < n && (i < w.scale.Asked || !w.scale.Ordinals); i++ {
		ordinal := w.scale.First + i
		if w.scale.Ordinals {
			pod := r.objects[Pods][types.NamespacedName{Namespace: w.at.Key.Namespace, Name: w.replicaName(ordinal)}]
			if pod != nil && pod.converted.known && pod.converted.workload == w.uid {
				continue
			}
		}
		list = append(list, ordinal)
	}
	return list
}

func (w *workload) replicaName(ordinal int) string {
	return w.at.Key.Name + "-" + strconv.Itoa(ordinal)
}

// replicaUID is unique per scale-up, because names of claims are derived from it.
func (w *workload) replicaUID(ordinal int) string {
	return fmt.Sprintf("%s-%d-%d", w.uid, w.scaleUp.generation, ordinal)
}

// namesVolumes reports whether claims of the pod's volumes are named after the pod.
func namesVolumes(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}

// spec returns the virtual pod that is like the pattern. It returns nil if such a pod would not be planned, or not at
// once, or is not for kube-scheduler: other schedulers may keep pods in queues of their own.
func (r *replicas) spec(w *workload, pattern *corev1.Pod, ordinal int) *model.PodSpec {
	if by := pattern.Spec.SchedulerName; by != "" && by != corev1.DefaultSchedulerName || len(pattern.Spec.SchedulingGates) > 0 ||
		r.vocabulary.Pods.DelayOf(pattern) > 0 {
		return nil
	}
	pod := *pattern // the conversion changes nothing in it
	pod.Name, pod.UID, pod.DeletionTimestamp, pod.Spec.NodeName = w.replicaName(ordinal), types.UID(w.replicaUID(ordinal)), nil, ""
	pod.Status = corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	if w.scale.Ordinals {
		pod.Labels = map[string]string{}
		maps.Copy(pod.Labels, pattern.Labels)
		pod.Labels[appsv1.StatefulSetPodNameLabel], pod.Labels[appsv1.PodIndexLabel] = pod.Name, strconv.Itoa(ordinal)
		pod.Spec.Volumes = r.ordinalVolumes(pattern, pod.Name)
	}
	spec, disposition, _ := r.convertPod(&pod)
	if disposition != convert.Pending || spec.Rejected != nil ||
		slices.ContainsFunc(spec.Volumes, func(v model.Volume) bool { return v.Exclusive }) {
		return nil
	}
	spec.Virtual = model.VirtualReplica
	return &spec
}

// ordinalVolumes returns the volumes of a pod of a StatefulSet with that name. Claims that do not exist are left out:
// the StatefulSet creates them with the pod, and most have a volume where the pod is placed.
func (r *replicas) ordinalVolumes(pattern *corev1.Pod, name string) []corev1.Volume {
	volumes := make([]corev1.Volume, 0, len(pattern.Spec.Volumes))
	for _, v := range pattern.Spec.Volumes {
		if source := v.PersistentVolumeClaim; source != nil {
			if template, own := strings.CutSuffix(source.ClaimName, pattern.Name); own {
				claim := *source
				claim.ClaimName = template + name
				v.PersistentVolumeClaim = &claim
				if r.now(Ref{VolumeClaims, types.NamespacedName{Namespace: pattern.Namespace, Name: claim.ClaimName}}) == nil {
					v.VolumeSource = corev1.VolumeSource{}
				}
			}
		}
		volumes = append(volumes, v)
	}
	return volumes
}
