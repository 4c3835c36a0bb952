package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file gives pods that do not exist yet the labels that their controllers add to those of the template:
// https://kubernetes.io/docs/reference/labels-annotations-taints/. Hashes that no object of the input shows are
// derived from the template, and differ from those of the controllers.

// Labels that have no constant in the API packages.
const (
	legacyJobName       = "job-name"
	legacyControllerUID = "controller-uid"
	templateGeneration  = "pod-template-generation"
)

// addGivenLabels adds the labels and annotations of the controller to a pod with the ordinal.
func (w *workload) addGivenLabels(pod *corev1.Pod, ordinal int) {
	given := map[string]string{}
	switch {
	case w.kind == "Deployment":
		given[appsv1.DefaultDeploymentUniqueLabelKey] = w.revision
	case w.kind == statefulSet:
		given[appsv1.StatefulSetPodNameLabel] = pod.Name
		given[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
		given[appsv1.ControllerRevisionHashLabelKey] = w.revision
	case w.job != nil && (w.job.ManualSelector == nil || !*w.job.ManualSelector):
		uid := string(w.meta.UID)
		if uid == "" || w.kind == "CronJob" { // then it is that of a Job that does not exist yet
			uid = hashOf(w.kind + " " + key(&w.meta))
		}
		given[legacyJobName], given[batchv1.JobNameLabel] = w.meta.Name, w.meta.Name
		given[legacyControllerUID], given[batchv1.ControllerUidLabel] = uid, uid
	}
	if w.indexed() {
		given[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(ordinal)
		pod.Annotations = with(pod.Annotations, map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(ordinal)})
	}
	if len(given) > 0 {
		pod.Labels = with(pod.Labels, given)
	}
}

// with returns a copy of a map with other entries.
func with(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

func (w *workload) indexed() bool {
	return w.job != nil && w.job.CompletionMode != nil && *w.job.CompletionMode == batchv1.IndexedCompletion
}

// setRevision finds the hash of the template that the next pods get: that of the status, of the ReplicaSet with the
// same template or else of the newest one, of the newest pod, or one that is derived from the template.
func (w *workload) setRevision(alive []*corev1.Pod, all []*workload) {
	label, prefix := appsv1.ControllerRevisionHashLabelKey, w.meta.Name+"-"
	if w.kind == "Deployment" {
		label, prefix = appsv1.DefaultDeploymentUniqueLabelKey, ""
		template, newest := hashOf(w.template), -1
		for _, set := range all {
			ref := metav1.GetControllerOfNoCopy(&set.meta)
			number, _ := strconv.Atoi(set.meta.Annotations["deployment.kubernetes.io/revision"])
			if ref == nil || set.meta.Namespace != w.meta.Namespace || !w.is(ref) {
				continue
			}
			own := *set.template.DeepCopy()
			delete(own.Labels, label)
			if hashOf(own) == template {
				number += math.MaxInt32
			}
			if number > newest {
				newest, w.revision = number, set.template.Labels[label]
			}
		}
	}
	var last *corev1.Pod
	for _, pod := range alive {
		if pod.Labels[label] != "" && (last == nil || last.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			last = pod
		}
	}
	if w.revision == "" && last != nil {
		w.revision = last.Labels[label]
	}
	if w.revision == "" {
		w.revision = prefix + hashOf(w.template)
	}
}

// hashOf returns a label value that is the same for equal values.
func hashOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Append(nil, value) // objects of the API are always encoded
	}
	h := fnv.New32a()
	h.Write(text)
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

// completeDaemons gives the templates of DaemonSets of files the labels that the DaemonSet controller adds to pods.
func (o *completion) completeDaemons() {
	for _, d := range o.daemons {
		if d.live {
			continue
		}
		template := &d.object.Spec.Template
		generation := cmp.Or(d.object.Annotations[appsv1.DeprecatedTemplateGeneration], "1")
		given := map[string]string{appsv1.ControllerRevisionHashLabelKey: hashOf(template), templateGeneration: generation}
		template.Labels = with(given, template.Labels)
	}
}
