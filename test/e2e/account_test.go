package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/test/permission"
	"github.com/karpenter-go/karpenter/test/rendering"
)

// account is the service account of the controllers of all cases. It has the permissions that the chart grants, and
// no others.
var account = permission.Account{Namespace: "kube-system", Name: "karpenter"}

// permissions are the kinds of the chart's objects that grant permissions, and the Secret that the account may only
// update.
var permissions = []string{"Secret", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}

// employ creates the account with the chart's permissions for a provider, and writes its kubeconfig.
func (c *cluster) employ(ctx context.Context, config *rest.Config, provider string) error {
	objects, _, err := rendering.Order{Release: account.Name, Namespace: account.Namespace, Chart: filepath.Join("..", "..", "charts", "karpenter"), Values: map[string]any{
		"settings": map[string]any{"clusterName": "sandbox", "cloudProvider": provider, "interruptionQueue": "interruptions",
			"featureGates": map[string]any{"capacityBuffer": true, "nodeOverlay": true},
			// With this setting, workloads that select pods are watched too.
			"schedulerConfig": "podTopologySpread: {defaultConstraints: [{maxSkew: 5, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]}"},
	}}.Render()
	if err != nil {
		return fmt.Errorf("rendering the chart's permissions: %w", err)
	}
	for _, object := range objects {
		if !slices.Contains(permissions, object.GetKind()) {
			continue
		}
		text, err := json.Marshal(object.Object)
		if err != nil {
			return err
		}
		err = c.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("e2e"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s of the chart: %w", object.GetKind(), object.GetName(), err)
		}
	}
	kubeconfig, err := permission.Kubeconfig(ctx, config, account)
	if err != nil {
		return err
	}
	return os.WriteFile(c.kubeconfig(), kubeconfig, 0o600)
}

// kubeconfig returns the path of the controllers' kubeconfig.
func (c *cluster) kubeconfig() string {
	if c.credentials != "" {
		return c.credentials
	}
	return filepath.Join(filepath.Dir(c.sandbox.Kubeconfig()), "account.kubeconfig")
}

// denied returns an error with the account's requests that the API server has denied so far.
func (c *cluster) denied() error {
	log, err := permission.Read(c.audit)
	if err != nil {
		return err
	}
	if len(log.Allowed) == 0 && c.controller != nil {
		return fmt.Errorf("%s asked for nothing: the controller ran as another user", account.User())
	}
	var calls []string
	for _, call := range log.Denied {
		calls = append(calls, fmt.Sprintf("%s (%s)", call, call.Reason))
	}
	if len(calls) > 0 {
		return fmt.Errorf("the chart's permissions do not suffice; denied:\n%s", strings.Join(calls, "\n"))
	}
	return nil
}

// TestDeniedCalls checks that a request without a permission of the chart is detected; otherwise no case could fail
// because of one.
func TestDeniedCalls(t *testing.T) {
	only(t)
	t.Parallel()
	c, err := startCluster(t.Context(), t.TempDir(), "kwok")
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	employee, err := client.New(config, client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := employee.List(t.Context(), &corev1.PodList{}); err != nil {
		t.Errorf("the account may not list pods: %v", err)
	}
	if err := c.denied(); err != nil {
		t.Error(err)
	}
	if err := employee.List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Error("the account may list secrets")
	}
	if err := c.denied(); err == nil || !strings.Contains(err.Error(), "list secrets.core") {
		t.Errorf("listing secrets was denied, and the error is: %v", err)
	}
}
