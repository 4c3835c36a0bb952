package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	apps_validation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batch_validation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	core_validation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// TestRefusals compares what the API server's own validation says of each object with what package builtin of the product
// is tested to say: plugin/admission/builtin/testdata/refusals.txtar.
func TestRefusals(t *testing.T) {
	const end = "--- refused"
	text, err := os.ReadFile("../../plugin/admission/builtin/testdata/refusals.txtar")
	if err != nil {
		t.Fatal(err)
	}
	decoder := legacyscheme.Codecs.UniversalDecoder()
	for _, part := range strings.Split(string(text), "\n-- ")[1:] {
		head, want, _ := strings.Cut(part, end)
		name, object, _ := strings.Cut(head, " --\n")
		o, err := runtime.Decode(decoder, []byte(object))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if meta := o.(metav1.Object); meta.GetName() == "" { // the registry generates it before
			meta.SetName(meta.GetGenerateName() + "xxxxx")
		}
		refusals, template, path := judge(o)
		var lines []string
		for _, refusal := range refusals {
			lines = append(lines, refusal.Error())
		}
		if template != nil {
			for _, warning := range pod.GetWarningsForPodTemplate(context.Background(), path, template, nil) {
				lines = append(lines, "warning: "+warning)
			}
		}
		slices.Sort(lines)
		lines = slices.Compact(lines)
		said := slices.Compact(strings.FieldsFunc(want, func(r rune) bool { return r == '\n' }))
		for _, line := range lines {
			if !slices.Contains(said, line) {
				t.Errorf("%s: only the API server says: %s", name, line)
			}
		}
		for _, line := range said {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: the API server does not say: %s", name, line)
			}
		}
	}
}

// judge returns what the API server refuses of an object, and its template with the path.
func judge(object runtime.Object) (field.ErrorList, *core.PodTemplateSpec, *field.Path) {
	var opts core_validation.PodValidationOptions
	path := field.NewPath("spec", "template")
	switch o := object.(type) {
	case *core.Pod:
		return core_validation.ValidatePodCreate(o, opts), &core.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}, nil
	case *core.ReplicationController:
		return core_validation.ValidateReplicationController(o, opts), o.Spec.Template, path
	case *core.PersistentVolumeClaim:
		return core_validation.ValidatePersistentVolumeClaim(o, core_validation.PersistentVolumeClaimSpecValidationOptions{}), nil, nil
	case *core.PersistentVolume:
		return core_validation.ValidatePersistentVolume(o, core_validation.PersistentVolumeSpecValidationOptions{}), nil, nil
	case *apps.Deployment:
		return apps_validation.ValidateDeployment(o, opts), &o.Spec.Template, path
	case *apps.ReplicaSet:
		return apps_validation.ValidateReplicaSet(o, opts), &o.Spec.Template, path
	case *apps.StatefulSet:
		return apps_validation.ValidateStatefulSet(o, opts), &o.Spec.Template, path
	case *apps.DaemonSet:
		return apps_validation.ValidateDaemonSet(o, opts), &o.Spec.Template, path
	case *batch.Job:
		// The registry generates the selector and the labels before.
		generated := map[string]string{"batch.kubernetes.io/controller-uid": "u", "controller-uid": "u",
			"batch.kubernetes.io/job-name": o.Name, "job-name": o.Name}
		o.UID = "u"
		o.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": "u"}}
		o.Spec.Template.Labels = generated
		return batch_validation.ValidateJob(o, batch_validation.JobValidationOptions{PodValidationOptions: opts,
			RequirePrefixedLabels: true}), &o.Spec.Template, path
	case *batch.CronJob:
		return batch_validation.ValidateCronJobCreate(o, opts), &o.Spec.JobTemplate.Spec.Template, field.NewPath("spec", "jobTemplate",
			"spec", "template")
	}
	return nil, nil, nil
}
