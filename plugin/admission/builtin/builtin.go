// Package builtin says without an API server what an API server would refuse of workloads, pods and volume claims, in
// its words.
//
//	object --name, labels--> --selector and template--> --pod--> refusals, warnings
//
// The rules are those that decide whether pods can exist, and where they can run: names, labels, selectors, templates,
// resources, node selectors, affinity, tolerations, spread, restart policies, claims. Rules about probes, security
// contexts, lifecycles and sources of volumes are not among them: an object that breaks one of those has the same plan.
//
// The API server's own validation is in the module k8s.io/kubernetes. A module that requires it needs a replace
// directive for each staging module, and "go install" refuses a module with such directives; so this package has the
// rules in its own code, above what the staging modules publish. The module sandbox/kubernetes, which has Kubernetes,
// tests that both say the same about testdata/refusals.txtar.
//
// The package must not read files or clusters.
package builtin

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var specPath = field.NewPath("spec")

// Refusals returns why an API server would refuse to create the object; none for other kinds.
func Refusals(object runtime.Object) field.ErrorList {
	subdomain := validation.NameIsDNSSubdomain
	switch o := object.(type) {
	case *corev1.Pod:
		return append(metadata(&o.ObjectMeta, subdomain), podSpec(&o.Spec, specPath)...)
	case *appsv1.Deployment:
		return append(metadata(&o.ObjectMeta, subdomain),
			selected{o.Spec.Selector, &o.Spec.Template, o.Spec.Replicas, "deployment"}.refusals()...)
	case *appsv1.ReplicaSet:
		return append(metadata(&o.ObjectMeta, subdomain),
			selected{o.Spec.Selector, &o.Spec.Template, o.Spec.Replicas, "deployment"}.refusals()...)
	case *appsv1.StatefulSet:
		return append(metadata(&o.ObjectMeta, validation.NameIsDNSLabel),
			selected{o.Spec.Selector, withClaims(&o.Spec), o.Spec.Replicas, "statefulset"}.refusals()...)
	case *appsv1.DaemonSet:
		return append(metadata(&o.ObjectMeta, subdomain), daemonSet(&o.Spec)...)
	case *corev1.ReplicationController:
		return append(metadata(&o.ObjectMeta, subdomain), replicationController(&o.Spec)...)
	case *batchv1.Job:
		return append(metadata(&o.ObjectMeta, subdomain), jobSpec(&o.Spec, specPath)...)
	case *batchv1.CronJob:
		return append(metadata(&o.ObjectMeta, subdomain), cronJob(o)...)
	case *corev1.PersistentVolume:
		return append(metadata(&o.ObjectMeta, subdomain), volumeSpec(&o.Spec)...)
	case *corev1.PersistentVolumeClaim:
		return append(metadata(&o.ObjectMeta, subdomain), claimSpec(&o.Spec, specPath)...)
	}
	return nil
}

// metadata checks the name, the labels and what else all kinds have in common. The namespace is that of the request.
func metadata(meta *metav1.ObjectMeta, name validation.ValidateNameFunc) field.ErrorList {
	placed := *meta
	placed.Namespace = "default"
	if placed.Name == "" && placed.GenerateName != "" { // the API server appends five letters before it checks
		placed.Name = placed.GenerateName + "xxxxx"
	}
	wrong := validation.ValidateObjectMeta(&placed, true, name, field.NewPath("metadata"))
	if meta.Namespace != "" {
		for _, message := range validation.ValidateNamespaceName(meta.Namespace, false) {
			wrong = append(wrong, field.Invalid(field.NewPath("metadata", "namespace"), meta.Namespace, message))
		}
	}
	return wrong
}

// selected is the specification of a workload that selects the pods of its template.
type selected struct {
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	replicas *int32
	kind     string
}

func (s selected) refusals() field.ErrorList {
	wrong := nonNegative(s.replicas, specPath.Child("replicas"))
	path := specPath.Child("selector")
	if s.selector == nil {
		wrong = append(wrong, field.Required(path, ""))
	} else {
		wrong = append(wrong, labelSelector(s.selector, path)...)
		if len(s.selector.MatchLabels)+len(s.selector.MatchExpressions) == 0 {
			wrong = append(wrong, field.Invalid(path, s.selector, "empty selector is invalid for "+s.kind))
		}
	}
	wrong = append(wrong, matches(s.selector, s.template, specPath.Child("template"))...)
	return append(wrong, forever(s.template)...)
}

// matches checks that a selector selects the pods of a template; nil selects none. An invalid one is reported elsewhere.
func matches(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	by, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || by.Matches(labels.Set(template.Labels)) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("metadata", "labels"), template.Labels, "`selector` does not match template `labels`")}
}

// forever checks the template of pods that always restart.
func forever(template *corev1.PodTemplateSpec) field.ErrorList {
	path := specPath.Child("template")
	wrong := podTemplate(template, path)
	if policy := template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		wrong = append(wrong, field.NotSupported(path.Child("spec", "restartPolicy"), policy, []string{string(corev1.RestartPolicyAlways)}))
	}
	return wrong
}

// withClaims returns the template of a StatefulSet with the volumes of its claims.
func withClaims(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	if len(spec.VolumeClaimTemplates) == 0 {
		return &spec.Template
	}
	template := spec.Template.DeepCopy()
	own := map[string]bool{}
	template.Spec.Volumes = nil
	for i := range spec.VolumeClaimTemplates {
		name := spec.VolumeClaimTemplates[i].Name
		own[name] = true
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name})
	}
	for _, v := range spec.Template.Spec.Volumes {
		if !own[v.Name] {
			template.Spec.Volumes = append(template.Spec.Volumes, v)
		}
	}
	return template
}

func daemonSet(spec *appsv1.DaemonSetSpec) field.ErrorList {
	path := specPath.Child("selector")
	wrong := append(labelSelector(spec.Selector, path), matches(spec.Selector, &spec.Template, specPath.Child("template"))...)
	if spec.Selector != nil && len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		wrong = append(wrong, field.Invalid(path, spec.Selector, "empty selector is invalid for daemonset"))
	}
	return append(wrong, forever(&spec.Template)...)
}

// replicationController checks one whose selector defaults to the labels of its template.
func replicationController(spec *corev1.ReplicationControllerSpec) field.ErrorList {
	wrong := nonNegative(spec.Replicas, specPath.Child("replicas"))
	if spec.Template == nil {
		return append(wrong, field.Required(specPath.Child("template"), ""))
	}
	if len(spec.Selector) == 0 && len(spec.Template.Labels) == 0 {
		wrong = append(wrong, field.Required(specPath.Child("selector"), ""))
	}
	if len(spec.Selector) > 0 {
		wrong = append(wrong, matches(&metav1.LabelSelector{MatchLabels: spec.Selector}, spec.Template, specPath.Child("template"))...)
	}
	return append(wrong, forever(spec.Template)...)
}

// jobSpec checks the specification of a Job. Its selector is generated unless it is manual.
func jobSpec(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	wrong := append(nonNegative(spec.Parallelism, path.Child("parallelism")), nonNegative(spec.Completions, path.Child("completions"))...)
	wrong = append(wrong, nonNegative(spec.BackoffLimit, path.Child("backoffLimit"))...)
	if mode := spec.CompletionMode; mode != nil {
		switch {
		case *mode != batchv1.IndexedCompletion && *mode != batchv1.NonIndexedCompletion:
			wrong = append(wrong, field.NotSupported(path.Child("completionMode"), *mode,
				[]batchv1.CompletionMode{batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}))
		case *mode == batchv1.IndexedCompletion && spec.Completions == nil && spec.Parallelism != nil: // without both, each is 1
			wrong = append(wrong, field.Required(path.Child("completions"), "when completion mode is Indexed"))
		}
	}
	if spec.ManualSelector != nil && *spec.ManualSelector {
		wrong = append(wrong, matches(spec.Selector, &spec.Template, path.Child("template"))...)
	}
	wrong = append(wrong, podTemplate(&spec.Template, path.Child("template"))...)
	restart := path.Child("template", "spec", "restartPolicy")
	switch policy := spec.Template.Spec.RestartPolicy; policy {
	case corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	case "", corev1.RestartPolicyAlways:
		wrong = append(wrong, field.Required(restart, `valid values: "OnFailure", "Never"`))
	default:
		wrong = append(wrong, field.NotSupported(restart, policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure,
			corev1.RestartPolicyNever}))
	}
	return wrong
}

func cronJob(o *batchv1.CronJob) field.ErrorList {
	var wrong field.ErrorList
	if o.Spec.Schedule == "" {
		wrong = append(wrong, field.Required(specPath.Child("schedule"), ""))
	}
	wrong = append(wrong, jobSpec(&o.Spec.JobTemplate.Spec, specPath.Child("jobTemplate", "spec"))...)
	if len(o.Name) > utilvalidation.DNS1035LabelMaxLength-11 {
		wrong = append(wrong, field.Invalid(field.NewPath("metadata", "name"), o.Name, "must be no more than 52 characters"))
	}
	return wrong
}

func claimSpec(spec *corev1.PersistentVolumeClaimSpec, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	if len(spec.AccessModes) == 0 {
		wrong = append(wrong, field.Required(path.Child("accessModes"), "at least 1 access mode is required"))
	}
	wrong = append(wrong, accessModes(spec.AccessModes, path.Child("accessModes"))...)
	wrong = append(wrong, labelSelector(spec.Selector, path.Child("selector"))...)
	at := path.Child("resources").Key(string(corev1.ResourceStorage))
	switch storage, given := spec.Resources.Requests[corev1.ResourceStorage]; {
	case !given:
		wrong = append(wrong, field.Required(at, ""))
	case storage.Sign() <= 0:
		wrong = append(wrong, field.Invalid(at, storage.String(), "must be greater than zero"))
	}
	if name := spec.StorageClassName; name != nil && *name != "" {
		wrong = append(wrong, names(*name, validation.NameIsDNSSubdomain, path.Child("storageClassName"))...)
	}
	return wrong
}

func volumeSpec(spec *corev1.PersistentVolumeSpec) field.ErrorList {
	var wrong field.ErrorList
	if len(spec.AccessModes) == 0 {
		wrong = append(wrong, field.Required(specPath.Child("accessModes"), ""))
	}
	wrong = append(wrong, accessModes(spec.AccessModes, specPath.Child("accessModes"))...)
	if len(spec.Capacity) == 0 {
		wrong = append(wrong, field.Required(specPath.Child("capacity"), ""))
	}
	if a := spec.NodeAffinity; a != nil && a.Required != nil {
		wrong = append(wrong, nodeTerms(a.Required, specPath.Child("nodeAffinity", "required", "nodeSelectorTerms"))...)
	}
	return wrong
}

func accessModes(list []corev1.PersistentVolumeAccessMode, path *field.Path) field.ErrorList {
	valid := []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	var wrong field.ErrorList
	for _, mode := range list {
		wrong = append(wrong, oneOf(mode, valid, path)...)
	}
	if slices.Contains(list, corev1.ReadWriteOncePod) && len(list) > 1 {
		wrong = append(wrong, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return wrong
}

func labelSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func names(name string, rule validation.ValidateNameFunc, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	for _, message := range rule(name, false) {
		wrong = append(wrong, field.Invalid(path, name, message))
	}
	return wrong
}

func nonNegative(number *int32, path *field.Path) field.ErrorList {
	if number == nil {
		return nil
	}
	return validation.ValidateNonnegativeField(int64(*number), path)
}
