package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func podTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	wrong := append(metav1validation.ValidateLabels(template.Labels, path.Child("labels")),
		validation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
	return append(wrong, podSpec(&template.Spec, path.Child("spec"))...)
}

func podSpec(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	volumes, wrong := volumesOf(spec.Volumes, path.Child("volumes"))
	if len(spec.Containers) == 0 {
		wrong = append(wrong, field.Required(path.Child("containers"), ""))
	}
	seen := map[string]bool{}
	for i := range spec.Containers {
		wrong = append(wrong, container(&spec.Containers[i], seen, volumes, path.Child("containers").Index(i))...)
	}
	for i := range spec.InitContainers {
		wrong = append(wrong, container(&spec.InitContainers[i], seen, volumes, path.Child("initContainers").Index(i))...)
	}
	if policy := spec.RestartPolicy; policy != "" {
		wrong = append(wrong, oneOf(policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure,
			corev1.RestartPolicyNever}, path.Child("restartPolicy"))...)
	}
	wrong = append(wrong, metav1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	wrong = append(wrong, affinity(spec.Affinity, path.Child("affinity"))...)
	wrong = append(wrong, tolerations(spec.Tolerations, path.Child("tolerations"))...)
	wrong = append(wrong, spread(spec.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	if spec.PriorityClassName != "" {
		wrong = append(wrong, names(spec.PriorityClassName, validation.NameIsDNSSubdomain, path.Child("priorityClassName"))...)
	}
	if spec.RuntimeClassName != nil {
		wrong = append(wrong, names(*spec.RuntimeClassName, validation.NameIsDNSSubdomain, path.Child("runtimeClassName"))...)
	}
	return wrong
}

// volumesOf checks the names and claims of volumes, and returns the names.
func volumesOf(volumes []corev1.Volume, path *field.Path) (map[string]bool, field.ErrorList) {
	var wrong field.ErrorList
	seen := map[string]bool{}
	for i := range volumes {
		v, at := &volumes[i], path.Index(i)
		switch {
		case v.Name == "":
			wrong = append(wrong, field.Required(at.Child("name"), ""))
		case seen[v.Name]:
			wrong = append(wrong, field.Duplicate(at.Child("name"), v.Name))
		default:
			wrong = append(wrong, names(v.Name, validation.NameIsDNSLabel, at.Child("name"))...)
		}
		seen[v.Name] = true
		if claim := v.PersistentVolumeClaim; claim != nil && claim.ClaimName == "" {
			wrong = append(wrong, field.Required(at.Child("persistentVolumeClaim", "claimName"), ""))
		}
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			wrong = append(wrong, claimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec, at.Child("ephemeral", "volumeClaimTemplate", "spec"))...)
		}
	}
	return seen, wrong
}

// container checks one of a pod whose containers have the seen names.
func container(c *corev1.Container, seen, volumes map[string]bool, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	if c.Name == "" {
		wrong = append(wrong, field.Required(path.Child("name"), ""))
	} else {
		wrong = append(wrong, names(c.Name, validation.NameIsDNSLabel, path.Child("name"))...)
	}
	if c.Image == "" {
		wrong = append(wrong, field.Required(path.Child("image"), ""))
	}
	for i := range c.VolumeMounts {
		at, mount := path.Child("volumeMounts").Index(i), &c.VolumeMounts[i]
		switch {
		case mount.Name == "":
			wrong = append(wrong, field.Required(at.Child("name"), ""))
		case !volumes[mount.Name]:
			wrong = append(wrong, field.NotFound(at.Child("name"), mount.Name))
		}
		if mount.MountPath == "" {
			wrong = append(wrong, field.Required(at.Child("mountPath"), ""))
		}
	}
	for i := range c.Ports {
		if port := &c.Ports[i]; port.HostPort != 0 {
			for _, message := range utilvalidation.IsValidPortNum(int(port.HostPort)) {
				wrong = append(wrong, field.Invalid(path.Child("ports").Index(i).Child("hostPort"), port.HostPort, message))
			}
		}
	}
	wrong = append(wrong, resources(&c.Resources, path.Child("resources"))...)
	if c.Name != "" && seen[c.Name] {
		wrong = append(wrong, field.Duplicate(path.Child("name"), c.Name))
	}
	seen[c.Name] = true
	return wrong
}

// standardResources are those of containers without a prefix.
var standardResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

func resources(r *corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		wrong = append(wrong, amount(name, r.Limits[name], path.Child("limits").Key(string(name)))...)
	}
	requests := path.Child("requests")
	asked := maps.Clone(r.Limits) // the default
	if asked == nil {
		asked = corev1.ResourceList{}
	}
	maps.Copy(asked, r.Requests)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		request, limit := asked[name], r.Limits[name]
		wrong = append(wrong, amount(name, request, requests.Key(string(name)))...)
		_, limited := r.Limits[name]
		switch {
		case !limited && !overcommitted(name):
			wrong = append(wrong, field.Required(path.Child("limits"), "Limit must be set for non overcommitable resources"))
		case limited && !overcommitted(name) && request.Cmp(limit) != 0:
			wrong = append(wrong, field.Invalid(requests, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case limited && request.Cmp(limit) > 0:
			wrong = append(wrong, field.Invalid(requests, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name,
				limit.String())))
		}
	}
	return wrong
}

// overcommitted reports whether requests may be less than limits.
func overcommitted(name corev1.ResourceName) bool {
	return native(name) && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func native(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// amount checks the name of a container's resource, and how much of it is asked for.
func amount(name corev1.ResourceName, value resource.Quantity, path *field.Path) field.ErrorList {
	wrong := metav1validation.ValidateLabelName(string(name), path)
	if !strings.Contains(string(name), "/") && !slices.Contains(standardResources, name) && !strings.HasPrefix(string(name),
		corev1.ResourceHugePagesPrefix) {
		wrong = append(wrong, field.Invalid(path, name, "must be a standard resource type or fully qualified"),
			field.Invalid(path, name, "must be a standard resource for containers"))
	}
	if value.Sign() < 0 {
		wrong = append(wrong, field.Invalid(path, value.String(), validation.IsNegativeErrorMsg))
	}
	if !native(name) && value.MilliValue()%1000 != 0 {
		wrong = append(wrong, field.Invalid(path, value, "must be an integer"))
	}
	return wrong
}

// oneOf checks a value of which there are few.
func oneOf[T ~string](value T, valid []T, path *field.Path) field.ErrorList {
	if slices.Contains(valid, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, valid)}
}
