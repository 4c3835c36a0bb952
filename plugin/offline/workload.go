package offline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// workload is an object that creates pods from a template.
type workload struct {
	kind, version string
	origin        string
	meta          metav1.ObjectMeta
	// replicas is the number of pods to run at once, as the field specifies.
	replicas int
	field    string
	// start is the ordinal of the first pod.
	start    int
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
	claims   []corev1.PersistentVolumeClaim
	live     bool
	// job is the specification of a Job, or of the Jobs of a CronJob.
	job *batchv1.JobSpec
	// finished are the indexes of an indexed Job that have succeeded or failed: they get no further pod.
	finished []string
	// revision is the hash of the template that new pods have as a label; "" if it is not known yet.
	revision string
}

const (
	appsVersion  = "apps/v1"
	batchVersion = "batch/v1"
	statefulSet  = "StatefulSet"
)

func (o *objects) takeWorkload(origin string, object runtime.Object, live bool) bool {
	w := workloadOf(object)
	if w == nil {
		return false
	}
	w.origin, w.live = origin, live
	o.workloads = append(o.workloads, w)
	return true
}

// workloadOf returns nil for objects that create no pods.
func workloadOf(object runtime.Object) *workload {
	const replicas = "spec.replicas"
	switch s := object.(type) {
	case *appsv1.Deployment:
		return &workload{field: replicas, kind: "Deployment", version: appsVersion, meta: s.ObjectMeta,
			replicas: int(or(s.Spec.Replicas, 1)), selector: s.Spec.Selector, template: s.Spec.Template}
	case *appsv1.StatefulSet:
		w := &workload{field: replicas, kind: statefulSet, version: appsVersion, meta: s.ObjectMeta,
			replicas: int(or(s.Spec.Replicas, 1)), selector: s.Spec.Selector, template: s.Spec.Template,
			claims: s.Spec.VolumeClaimTemplates, revision: s.Status.UpdateRevision}
		if s.Spec.Ordinals != nil {
			w.start = int(s.Spec.Ordinals.Start)
		}
		return w
	case *appsv1.ReplicaSet:
		return &workload{field: replicas, kind: "ReplicaSet", version: appsVersion, meta: s.ObjectMeta,
			replicas: int(or(s.Spec.Replicas, 1)), selector: s.Spec.Selector, template: s.Spec.Template}
	case *corev1.ReplicationController:
		w := &workload{field: replicas, kind: "ReplicationController", version: "v1", meta: s.ObjectMeta,
			replicas: int(or(s.Spec.Replicas, 1)), template: or(s.Spec.Template, corev1.PodTemplateSpec{})}
		if len(s.Spec.Selector) == 0 {
			s.Spec.Selector = w.template.Labels // the default
		}
		if len(s.Spec.Selector) > 0 { // an empty selector would match all pods
			w.selector = &metav1.LabelSelector{MatchLabels: s.Spec.Selector}
		}
		return w
	case *batchv1.Job:
		return &workload{field: "spec.parallelism", kind: "Job", version: batchVersion, meta: s.ObjectMeta,
			replicas: remaining(s), selector: s.Spec.Selector, template: s.Spec.Template, job: &s.Spec,
			finished: []string{s.Status.CompletedIndexes, or(s.Status.FailedIndexes, "")}}
	case *batchv1.CronJob:
		w := &workload{field: "spec.jobTemplate.spec.parallelism", kind: "CronJob", version: batchVersion,
			meta: s.ObjectMeta, replicas: atOnce(&s.Spec.JobTemplate.Spec, 0), template: s.Spec.JobTemplate.Spec.Template,
			job: &s.Spec.JobTemplate.Spec}
		if s.Spec.Suspend != nil && *s.Spec.Suspend {
			w.replicas = 0
		}
		return w
	}
	return nil
}

// atOnce returns the number of pods of a job that run at the same time.
func atOnce(job *batchv1.JobSpec, succeeded int32) int {
	if job.Suspend != nil && *job.Suspend {
		return 0
	}
	n := int(or(job.Parallelism, 1))
	if job.Completions != nil {
		n = min(n, max(0, int(*job.Completions)-int(succeeded)))
	}
	return n
}

// remaining returns the number of pods of a Job that run at the same time from now on, as the Job controller counts
// them: none if the Job has ended, or if it has no completions and a pod has succeeded
// (https://kubernetes.io/docs/concepts/workloads/controllers/job/#parallel-jobs).
func remaining(job *batchv1.Job) int {
	for _, c := range job.Status.Conditions {
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget:
			if c.Status == corev1.ConditionTrue {
				return 0
			}
		}
	}
	if job.Spec.Completions == nil && job.Status.Succeeded > 0 {
		return 0
	}
	return atOnce(&job.Spec, job.Status.Succeeded)
}

func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// expand creates the missing pods of a workload. The controllers of a live cluster create their own, and those of
// workloads that are being deleted create none. A ReplicaSet or Job that another workload among the objects controls is
// counted there.
func (o *completion) expand(w *workload, alive []*corev1.Pod) {
	if w.live || w.meta.DeletionTimestamp != nil {
		return
	}
	owner := metav1.GetControllerOfNoCopy(&w.meta)
	if owner != nil && owner.Kind == "Deployment" && o.seen["*v1.Deployment "+w.meta.Namespace+"/"+owner.Name] != "" || w.kind == "CronJob" && o.runs(w) {
		return
	}
	if room := o.mostPods - len(o.pods); w.replicas-len(alive) > room {
		o.problem(fmt.Errorf("%s: %s: is %d, and at most %s may be added, want less or a larger --max-pods; its pods are not considered",
			w.origin, w.field, w.replicas, plural(max(0, room), "pod")))
		return
	}
	missing := w.missing(alive)
	if len(missing) > 0 {
		w.setRevision(alive, o.workloads)
	}
	for _, ordinal := range missing {
		controller := true
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: w.podName(ordinal), Namespace: w.meta.Namespace, CreationTimestamp: w.meta.CreationTimestamp,
				Labels: w.template.Labels, Annotations: w.template.Annotations,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: w.version, Kind: w.kind, Name: w.meta.Name, UID: w.meta.UID,
					Controller: &controller}},
			},
			Spec:   *w.template.Spec.DeepCopy(),
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		}
		w.addGivenLabels(pod, ordinal)
		pod.UID = types.UID(strings.ToLower(w.kind) + "/" + key(pod))
		o.addClaims(w, pod)
		o.pods = append(o.pods, sourced[*corev1.Pod]{pod, w.kind + " " + key(&w.meta), false})
	}
}

// missing returns the ordinals of the pods to create. Pods of a StatefulSet are identified by their names (a pod
// beyond its ordinals is surplus, and replaces none), and those of an indexed Job by their index. For all other
// workloads only the number of pods matters.
func (w *workload) missing(alive []*corev1.Pod) []int {
	taken := map[string]bool{}
	for _, pod := range alive {
		taken[pod.Name] = true
		if index, labeled := pod.Annotations[batchv1.JobCompletionIndexAnnotation]; labeled && w.indexed() {
			taken["index "+index] = true
		}
	}
	var list []int
	if w.kind != statefulSet {
		most := math.MaxInt
		if w.indexed() {
			most = int(or(w.job.Completions, math.MaxInt32))
			w.addFinished(taken, most)
		}
		for i := 0; len(list) < w.replicas-len(alive) && i < most; i++ {
			if !taken["index "+strconv.Itoa(i)] {
				list = append(list, i)
			}
		}
		return list
	}
	for i := range w.replicas {
		if ordinal := w.start + i; !taken[w.podName(ordinal)] {
			list = append(list, ordinal)
		}
	}
	return list
}

// addFinished adds the finished indexes of an indexed Job, which are lists such as 1,3-5,7 in increasing order.
func (w *workload) addFinished(taken map[string]bool, most int) {
	for _, list := range w.finished {
		next := 0
		for interval := range strings.SplitSeq(list, ",") {
			low, high, isRange := strings.Cut(interval, "-")
			if !isRange {
				high = low
			}
			first, err := strconv.Atoi(low)
			last, err2 := strconv.Atoi(high)
			if err != nil || err2 != nil {
				continue
			}
			for next = max(next, first); next <= min(last, most-1); next++ {
				taken["index "+strconv.Itoa(next)] = true
			}
		}
	}
}

func (w *workload) podName(ordinal int) string { return fmt.Sprintf("%s-%d", w.meta.Name, ordinal) }

// runs reports whether a job of the CronJob is among the objects.
func (o *completion) runs(w *workload) bool {
	for _, job := range o.workloads {
		owner := metav1.GetControllerOfNoCopy(&job.meta)
		if job.kind == "Job" && job.meta.Namespace == w.meta.Namespace && owner != nil && owner.Kind == "CronJob" && owner.Name == w.meta.Name {
			return true
		}
	}
	return false
}

// addClaims gives a pod of a StatefulSet the volumes of its claim templates, in the place of those of the same name in the
// pod template, and creates the missing claims.
func (o *completion) addClaims(w *workload, pod *corev1.Pod) {
	for i := range w.claims {
		template := &w.claims[i]
		name := template.Name + "-" + pod.Name
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == template.Name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		if find[*corev1.PersistentVolumeClaim](&o.others, pod.Namespace, name) == nil {
			claim := template.DeepCopy()
			claim.Name, claim.Namespace = name, pod.Namespace
			claim.Status.Phase = corev1.ClaimPending
			o.volumeClaims = append(o.volumeClaims, claim)
			o.others.take(claim)
		}
	}
}
