package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Controller is a Deployment that runs the controller, as its template says.
type Controller struct {
	Namespace, Name string
	// Account is the name of its service account, in Namespace.
	Account string
	// Wanted are its replicas, Ready those that are ready; Waiting says what keeps pods from it, one text each.
	Wanted, Ready int32
	Waiting       []string
	// Settings are those of its flags and environment, by the name of the environment variable; what is read from elsewhere
	// (valueFrom) is not among them.
	Settings map[string]string
	// Open: some settings are read from elsewhere.
	Open bool
}

// setting is what the template says of a setting, otherwise where it says nothing, and "" where nothing can be known.
func (c *Controller) setting(name, otherwise string) string {
	if value, said := c.Settings[name]; said {
		return value
	}
	if c.Open {
		return ""
	}
	return otherwise
}

// Provider is the value of --cloud-provider; "" where it is read from elsewhere.
func (c *Controller) Provider() string { return c.setting("CLOUD_PROVIDER", "aws") }

// Elects reports whether it takes part in leader election.
func (c *Controller) Elects() bool { return c.Settings["DISABLE_LEADER_ELECTION"] != "true" }

// LeaseNamespace is where its election is.
func (c *Controller) LeaseNamespace() string {
	return cmp.Or(c.Settings["LEADER_ELECTION_NAMESPACE"], c.Namespace)
}

// installation is what its permissions follow from.
func (c *Controller) installation(name string) Installation {
	i := Installation{Provider: c.Provider(), LeaseNamespace: c.LeaseNamespace(), LeaseName: c.setting("LEADER_ELECTION_NAME", name), Unconverted: c.Settings["WEBHOOK_PORT"] == "0"}
	if !c.Elects() {
		i.LeaseName = ""
	}
	return i
}

// object is what a finding about it names.
func (c *Controller) object() string { return "deployment/" + c.Namespace + "/" + c.Name }

// gate is the state of a feature gate, and whether the template says it.
func (c *Controller) gate(name string) (on, said bool) {
	for item := range strings.SplitSeq(c.Settings["FEATURE_GATES"], ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(item), "="); key == name {
			return value == "true", true
		}
	}
	return false, !c.Open
}

// controllers finds the Deployments that run the controller, and says why pods of them do not. Without the right to list
// Deployments nothing is known of them, which is no finding: a note says so.
func (s *Source) controllers(ctx context.Context, f *Facts) {
	var deployments appsv1.DeploymentList
	options := []client.ListOption{client.Limit(pageSize), client.InNamespace(s.Installed)}
	for {
		if err := s.Client.List(ctx, &deployments, append(options, client.Continue(deployments.Continue))...); err != nil {
			if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
				f.Notes = append(f.Notes, "did not look at the controller's Deployment: "+err.Error())
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

// controllerOf reads the template of a Deployment; nil if it does not run the controller.
func controllerOf(d *appsv1.Deployment) *Controller {
	for i := range d.Spec.Template.Spec.Containers {
		container := &d.Spec.Template.Spec.Containers[i]
		arguments := slices.Concat(container.Command, container.Args)
		named := d.Labels["app.kubernetes.io/name"] == "karpenter" && container.Name == "controller"
		runs := slices.Contains(arguments, "controller") && slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "CLOUD_PROVIDER" || e.Name == "KARPENTER_SERVICE" })
		if !named && !runs {
			continue
		}
		c := &Controller{Namespace: d.Namespace, Name: d.Name, Account: cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"), Wanted: 1, Ready: d.Status.ReadyReplicas,
			Settings: map[string]string{}, Open: len(container.EnvFrom) > 0}
		if d.Spec.Replicas != nil {
			c.Wanted = *d.Spec.Replicas
		}
		for _, e := range container.Env {
			if e.ValueFrom == nil {
				c.Settings[e.Name] = e.Value
			}
		}
		for k, argument := range arguments { // flags win over the environment
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

// waiting says what keeps pods of a Deployment from being ready.
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
		c.Waiting = append(c.Waiting, "its pods cannot be listed: "+err.Error())
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

// noPods says why a Deployment has none, as far as its conditions tell.
func noPods(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return "it has no pods: " + c.Message
		}
	}
	return "it has no pods"
}

// waitsFor says why a pod is not ready; "" if it is.
func waitsFor(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := status.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			text := strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
			if last := status.LastTerminationState.Terminated; last != nil {
				text += fmt.Sprintf("; it ended with exit code %d (%s)", last.ExitCode, last.Reason)
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
		return "it has not started yet"
	}
	return "it runs and is not ready: its log says why"
}
