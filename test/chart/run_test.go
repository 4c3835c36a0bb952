package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/webhook"
	"github.com/karpenter-go/karpenter/test/permission"
	"github.com/karpenter-go/karpenter/test/rendering"
)

// unneeded are permissions that the fleet of this test does not use, and why the chart grants them nevertheless.
var unneeded = map[string]string{
	"get pods":                                           "a nomination that the watch does not show after 5 s is read live",
	"get nodes":                                          "likewise a taint, and nodes of claims that look as if they had lost them",
	"get nodeclaims.karpenter.sh":                        "likewise a claim, and one that is there already when it is bought again after a crash",
	"get nodepools.karpenter.sh":                         "conflicts are read live",
	"update nodepools/finalizers.karpenter.sh":           "clusters with the admission plugin OwnerReferencesPermissionEnforcement ask for it, because claims block their pool's deletion",
	"update nodeclaims/finalizers.karpenter.sh":          "likewise nodes and their claim",
	"create leases.coordination.k8s.io in karpenter":     "the chart makes the lease; who renders it without, or deletes it, gets one from the controller",
	"get leases.coordination.k8s.io in kube-node-lease":  "asked when the cloud cannot find a machine, or a node leaves that is not ready",
	"patch events.events.k8s.io":                         "an event that comes again is counted up",
	"patch events in karpenter":                          "likewise of leader election",
	"update ec2nodeclasses/finalizers.karpenter.k8s.aws": "likewise what a class owns",
	"get ec2nodeclasses.karpenter.k8s.aws":               "read live while it is being deleted",
	"create configmaps in karpenter":                     "the chart makes the ConfigMap; who deletes it gets another from the controller",
	"update configmaps in kube-system":                   "a simulated machine is written down anew when it registers late",

	"update provisioners/finalizers.karpenter.sh":                 "likewise what a Provisioner has become",
	"update awsnodetemplates/finalizers.karpenter.k8s.aws":        "likewise what an AWSNodeTemplate has become",
	"update secrets in karpenter":                                 "the certificate of the conversion webhook is renewed after two months",
	"patch customresourcedefinitions/status.apiextensions.k8s.io": "once, in clusters where objects are stored in v1beta1",
}

// run runs a fleet whose controller has only the permissions of the chart's service account.
func (w *world) run(t *testing.T) {
	w.createService(t)
	stop := w.startController(t, installed())
	// The previous version of the chart contained its own definitions. Those of this version reference a Service that
	// does not exist, which the controller corrects each time.
	for range 2 {
		w.upgradeTo(t, "karpenter-crd", definitionChart, values{})
		w.awaitOldVersion(t)
	}
	w.create(t, "fleet.yaml")
	w.awaitBound(t, 4)
	w.awaitCost(t)
	w.guarded(t, true)
	w.older(t)
	// Like `kubectl delete nodeclaims --all`: nodes are drained, and others are launched.
	if err := w.DeleteAllOf(t.Context(), &karpv1.NodeClaim{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the nodes to be drained and replaced", func(ctx context.Context) error {
		claims := &karpv1.NodeClaimList{}
		if err := w.List(ctx, claims); err != nil {
			return err
		}
		for _, claim := range claims.Items {
			if claim.DeletionTimestamp != nil {
				return fmt.Errorf("%s is still going", claim.Name)
			}
		}
		return nil
	})
	w.awaitBound(t, 4)
	w.scaleDown(t, "web", "stubborn")
	w.guarded(t, false)
	stop()
}

// createService creates the Service through which the API server reaches the controller's webhook. The controller runs on
// the machine of the API server, and assumes the namespace kube-system, like programs outside a cluster.
func (w *world) createService(t *testing.T) {
	t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter"}}
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	if err := w.Create(t.Context(), service); err != nil {
		t.Fatal(err)
	}
}

// awaitOldVersion waits until a pool of v1beta1 is accepted.
func (w *world) awaitOldVersion(t *testing.T) {
	t.Helper()
	text := `{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"old"},"spec":{"template":{"spec":{"requirements":[],
		"nodeClassRef":{"apiVersion":"karpenter.kwok.sh/v1alpha1","kind":"KWOKNodeClass","name":"default"}}},"disruption":{"expireAfter":"24h"},"limits":{"cpu":0}}}`
	pool := &unstructured.Unstructured{}
	if err := pool.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	await(t, "the API server to have v1beta1 converted", func(ctx context.Context) error { return w.Create(ctx, pool) })
	now := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		t.Fatal(err)
	}
	if got := now.Spec.Template.Spec.ExpireAfter.String(); got != "24h" {
		t.Errorf("expireAfter is %s in v1, want 24h", got)
	}
	if err := w.Delete(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	await(t, "the definitions to have the applying manager as their only one", func(ctx context.Context) error {
		for _, name := range webhook.Definitions() {
			definition := &apiextensionsv1.CustomResourceDefinition{}
			if err := w.Get(ctx, types.NamespacedName{Name: name}, definition); err != nil {
				return err
			}
			for _, entry := range definition.ManagedFields {
				if entry.Manager == "karpenter-conversion" && entry.Subresource == "" {
					return fmt.Errorf("%s: %s", name, entry.FieldsV1.GetRawString())
				}
			}
		}
		return nil
	})
}

// scaleDown scales the Deployments to zero, and waits until all nodes are removed.
func (w *world) scaleDown(t *testing.T, deployments ...string) {
	t.Helper()
	for _, name := range deployments {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if err := w.Patch(t.Context(), deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the empty nodes to leave", func(ctx context.Context) error {
		claims, nodes := &karpv1.NodeClaimList{}, &corev1.NodeList{}
		if err := errors.Join(w.List(ctx, claims), w.List(ctx, nodes)); err != nil {
			return err
		}
		if len(claims.Items)+len(nodes.Items) > 0 {
			return fmt.Errorf("%d claims and %d nodes are there", len(claims.Items), len(nodes.Items))
		}
		return nil
	})
}

// awaitCost waits until the controller's metrics contain the fleet's cost and its lower bound.
func (w *world) awaitCost(t *testing.T) {
	t.Helper()
	await(t, "the cost of the fleet among the metrics", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.metrics+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		cost, least := -1.0, -1.0
		for line := range strings.Lines(string(text)) {
			_, _ = fmt.Sscanf(line, "karpenter_cluster_cost %g", &cost)
			_, _ = fmt.Sscanf(line, "karpenter_cluster_cost_bound %g", &least)
		}
		if cost <= 0 || least <= 0 || least > cost*1.000001 {
			return fmt.Errorf("the fleet costs %g and at least %g", cost, least)
		}
		return nil
	})
}

// create applies a file of testdata.
func (w *world) create(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// awaitBound waits until the given number of the shop's pods are bound.
func (w *world) awaitBound(t *testing.T, want int) {
	t.Helper()
	await(t, "the pods to run", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := w.List(ctx, pods, client.InNamespace("shop")); err != nil {
			return err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		if running != want || len(pods.Items) != want {
			return fmt.Errorf("%d of %d pods run, want %d", running, len(pods.Items), want)
		}
		return nil
	})
}

// guarded checks, by a dry run, whether a definition may be deleted.
func (w *world) guarded(t *testing.T, want bool) {
	t.Helper()
	for _, name := range []string{"nodeclaims.karpenter.sh", "nodepools.karpenter.sh", "kwoknodeclasses.karpenter.kwok.sh", "ec2nodeclasses.karpenter.k8s.aws",
		"provisioners.karpenter.sh", "awsnodetemplates.karpenter.k8s.aws", "nodeoverlays.karpenter.sh"} {
		await(t, fmt.Sprintf("deletion of %s to be refused: %t", name, want), func(ctx context.Context) error {
			err := w.Delete(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.DryRunAll)
			switch {
			case want && err == nil:
				return errors.New("it was allowed")
			case want && !strings.Contains(err.Error(), "Delete the NodePools first"):
				return err
			case !want:
				return err
			}
			return nil
		})
	}
}

// judge reads the requests of both providers' controllers from the audit log: which were denied, and which granted
// permissions were not used.
func (w *world) judge(t *testing.T) {
	log, err := permission.Read(w.audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range log.Denied {
		t.Errorf("denied: %s (%s)", call, call.Reason)
	}
	grants := append(grants(t, installed()), grants(t, onAWS())...)
	names := map[string]bool{}
	for _, grant := range grants {
		names[grant.String()] = true
	}
	for _, grant := range permission.Unused(grants, log.Allowed) {
		if unneeded[grant.String()] == "" {
			t.Errorf("the chart grants %q, which was never used; remove it, or add the reason to this test", grant)
		}
	}
	for name := range unneeded {
		if !names[name] {
			t.Errorf("this test has a reason for %q, but it is not granted", name)
		}
	}
}

// grants returns the permissions of the controller's account in the rendered chart.
func grants(t *testing.T, with values) []permission.Grant {
	t.Helper()
	r := render(t, mainChart, with)
	all := permission.Grants("", decode[rbacv1.ClusterRole](t, r, "ClusterRole", "karpenter").Rules)
	for _, object := range r.objects {
		if object.GetKind() == "Role" {
			role := decode[rbacv1.Role](t, r, "Role", object.GetName())
			all = append(all, permission.Grants(role.Namespace, role.Rules)...)
		}
	}
	return all
}

// freeAddress returns an address that no process listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// startController runs the binary as the chart's Deployment would: with its environment variables and its account.
// The returned function stops it as the kubelet does.
func (w *world) startController(t *testing.T, with values, more ...string) (stop func()) {
	t.Helper()
	kubeconfig, err := permission.Kubeconfig(t.Context(), w.config, account)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	w.metrics = freeAddress(t)
	_, port, _ := net.SplitHostPort(w.metrics)
	_, webhook, _ := net.SplitHostPort(freeAddress(t))
	command := exec.Command(karpenter(t), "controller", "--kubeconfig="+path, "--metrics-port="+port, "--health-probe-port=0", "--webhook-port="+webhook,
		"--timers=disruption-poll=1s,drain-min=1s,collection=5s,class-recheck=5s,bound=1s")
	command.Env = more
	for name, value := range environment(deployment(t, with)) {
		command.Env = append(command.Env, name+"="+value)
	}
	said := &bytes.Buffer{}
	command.Stdout, command.Stderr = said, said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the parent-death signal is sent when the thread that forked ends
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			ended <- command.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting the controller: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		if t.Failed() {
			t.Logf("the controller's output:\n%s", said)
		}
	})
	return func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("the controller ended with %v", err)
		}
	}
}
