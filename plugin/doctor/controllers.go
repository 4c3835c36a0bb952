package doctor

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Controller is a Deployment that runs the controller, according to its template.
type Controller struct {
	Namespace, Name string
	// Account is the name of its service account, in Namespace.
	Account string
	// Upstream is the image of kubernetes-sigs' Karpenter, if it runs that, not the controller of this project.
	Upstream string
	// Wanted is the number of its replicas, and Ready the number of ready ones. Waiting contains one text for each
	// reason why pods are not ready.
	Wanted, Ready int32
	Waiting       []string
	// Settings contains those of its flags and environment, by the name of the environment variable. Values from
	// other sources (valueFrom) are not included.
	Settings map[string]string
	// Open means that some settings come from other sources.
	Open bool
}

// setting returns the value of a setting in the template, otherwise if the template does not set it, and "" if it is
// unknown.
func (c *Controller) setting(name, otherwise string) string {
	if value, set := c.Settings[name]; set {
		return value
	}
	if c.Open {
		return ""
	}
	return otherwise
}

// Provider returns the value of --cloud-provider, or "" if it comes from another source.
func (c *Controller) Provider() string { return c.setting("CLOUD_PROVIDER", "aws") }

// Elects reports whether it takes part in leader election.
func (c *Controller) Elects() bool { return c.Settings["DISABLE_LEADER_ELECTION"] != "true" }

// LeaseNamespace returns the namespace of its leader election.
func (c *Controller) LeaseNamespace() string {
	return cmp.Or(c.Settings["LEADER_ELECTION_NAMESPACE"], c.Namespace)
}

// installation returns the input from which its permissions are derived.
func (c *Controller) installation(name string) Installation {
	i := Installation{Provider: c.Provider(), LeaseNamespace: c.LeaseNamespace(), LeaseName: c.setting("LEADER_ELECTION_NAME", name), Unconverted: c.Settings["WEBHOOK_PORT"] == "0"}
	i.Overlays, _ = c.gate("NodeOverlay")
	i.Buffers, _ = c.gate("CapacityBuffer")
	i.Replicas = c.setting("PROACTIVE_SCALE_UP", "true") == "true"
	if !c.Elects() {
		i.LeaseName = ""
	}
	return i
}

// object returns the name of the object in findings.
func (c *Controller) object() string { return "deployment/" + c.Namespace + "/" + c.Name }

// gate returns the state of a feature gate, and whether the template contains it.
func (c *Controller) gate(name string) (on, known bool) {
	for item := range strings.SplitSeq(c.Settings["FEATURE_GATES"], ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(item), "="); key == name {
			return value == "true", true
		}
	}
	return false, !c.Open
}

// controllers finds the Deployments that run the controller, and the reasons why their pods are not ready. Without
// permission to list Deployments they are unknown. This is not a finding: a note reports it.
func (s *Source) controllers(ctx context.Context, f *Facts) {
	var deployments appsv1.DeploymentList
	options := []client.ListOption{client.Limit(pageSize), client.InNamespace(s.Installed)}
	for {
		if err := s.Client.List(ctx, &deployments, append(options, client.Continue(deployments.Continue))...); err != nil {
			if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				f.Notes = append(f.Notes, "the Deployments of the controller are not examined: "+err.Error())
				f.Hidden = true
			}
			return
		}
		for i := range deployments.Items {
			if c := controllerOf(&deployments.Items[i]); c != nil {
				s.waiting(ctx, c, &deployments.Items[i])
				f.Controllers = append(f.Controllers, *c)
			}
		}
		if deployments.Continue == "" {
			return
		}
	}
}

// controllerOf evaluates the template of a Deployment. It returns nil if the Deployment does not run the controller.
func controllerOf(d *appsv1.Deployment) *Controller {
	for i := range d.Spec.Template.Spec.Containers {
		container := &d.Spec.Template.Spec.Containers[i]
		arguments := slices.Concat(container.Command, container.Args)
		named := d.Labels["app.kubernetes.io/name"] == "karpenter" && container.Name == "controller"
		runs := slices.Contains(arguments, "controller") && slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "CLOUD_PROVIDER" || e.Name == "KARPENTER_SERVICE" })
		upstream := upstreamImage(container.Image)
		if !named && !runs && upstream == "" {
			continue
		}
		c := &Controller{Namespace: d.Namespace, Name: d.Name, Account: cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"), Wanted: 1, Ready: d.Status.ReadyReplicas,
			Settings: map[string]string{}, Open: len(container.EnvFrom) > 0, Upstream: upstream}
		if d.Spec.Replicas != nil {
			c.Wanted = *d.Spec.Replicas
		}
		for _, e := range container.Env {
			switch {
			case e.ValueFrom == nil:
				c.Settings[e.Name] = e.Value
			case e.ValueFrom.FieldRef == nil && e.ValueFrom.ResourceFieldRef == nil: // of a ConfigMap or a Secret
				c.Open = true
			}
		}
		for k, argument := range arguments { // flags take precedence over the environment
			name, value, both := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
			if !strings.HasPrefix(argument, "--") {
				continue
			}
			if !both && k+1 < len(arguments) {
				value = arguments[k+1]
			}
			c.Settings[strings.ToUpper(strings.ReplaceAll(name, "-", "_"))] = value
		}
		return c
	}
	return nil
}

// upstreamImages are the names of upstream's image, in any registry (https://gallery.ecr.aws/karpenter/controller).
// The chart of this project refuses them.
var upstreamImages = regexp.MustCompile(`(^|/)karpenter/controller(:[^/@]*)?(@.*)?$`)

// upstreamImage returns the image if it is upstream's, "" for another one.
func upstreamImage(image string) string {
	if !upstreamImages.MatchString(image) {
		return ""
	}
	return image
}

// waiting collects the reasons why pods of a Deployment are not ready.
func (s *Source) waiting(ctx context.Context, c *Controller, d *appsv1.Deployment) {
	if c.Ready >= c.Wanted || c.Wanted == 0 {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return
	}
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(pageSize)); err != nil {
		c.Waiting = append(c.Waiting, "the pods cannot be listed: "+err.Error())
		return
	}
	for i := range pods.Items {
		if why := waitsFor(&pods.Items[i]); why != "" {
			c.Waiting = append(c.Waiting, "pod "+pods.Items[i].Name+": "+why)
		}
	}
	if len(pods.Items) == 0 {
		c.Waiting = append(c.Waiting, noPods(d))
	}
}

// noPods returns why a Deployment has no pods, according to its conditions.
func noPods(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return "the Deployment has no pods: " + c.Message
		}
	}
	return "the Deployment has no pods"
}

// waitsFor returns why a pod is not ready, or "" if it is.
func waitsFor(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := status.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			text := strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
			if last := status.LastTerminationState.Terminated; last != nil {
				text += fmt.Sprintf("; the container ended with exit code %d (%s)", last.ExitCode, last.Reason)
				if last.Message != "" {
					text += ": " + last.Message
				}
			}
			return text
		}
	}
	ready := false
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			return strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
		case c.Type == corev1.PodReady:
			ready = c.Status == corev1.ConditionTrue
		}
	}
	switch {
	case ready:
		return ""
	case pod.Status.Phase == corev1.PodPending:
		return "the pod has not started"
	}
	return "the pod runs, but is not ready; see its log"
}
