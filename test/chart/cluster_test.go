package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
	"github.com/karpenter-go/karpenter/test/permission"
)

// patience is the deadline of waits whose duration is not tested.
const patience = 3 * time.Minute

// account is the controller's service account in the chart.
var account = permission.Account{Namespace: namespace, Name: releaseName}

// world is one sandbox and the clients that Helm needs.
type world struct {
	client.Client
	config     *rest.Config
	kubeconfig string
	metrics    string // address of the controller's metrics
	audit      string // the API server's audit log of requests by the controller's account
	helm       *action.Configuration
}

// TestOnSandbox runs the life of an installation, one step after the other.
func TestOnSandbox(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		name string
		play func(*testing.T)
	}{
		{"definitions", w.installDefinitions},
		{"the objects of the guide", w.followGuide},
		{"apply every object twice", w.applyTwice},
		{"install the previous version beside a foreign lease", w.installPrevious},
		{"upgrade", w.upgrade},
		{"run as the chart's service account", w.run},
		{"run on AWS", w.runAWS},
		{"permissions", w.judge},
		{"uninstall", w.uninstall},
		{"uninstall the definitions", w.uninstallDefinitions},
	} {
		if !t.Run(step.name, step.play) {
			t.Fatalf("%s failed; later steps depend on it", step.name)
		}
	}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	flags, log, err := permission.Arguments(t.TempDir(), account)
	if err != nil {
		t.Fatal(err)
	}
	// As before Kubernetes 1.34: a client that watches must list first, and needs both permissions.
	flags = append(flags, "--feature-gates=WatchList=false")
	s := sandboxtest.StartSandbox(t, sandboxtest.Options{ControlPlane: true, ExtraArgs: map[string][]string{"kube-apiserver": flags}})
	w := &world{kubeconfig: s.Kubeconfig(), audit: log, helm: action.NewConfiguration()}
	if w.config, err = s.Config(); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), karpv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if w.Client, err = client.New(w.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	getter := genericclioptions.NewConfigFlags(false)
	ns := namespace
	getter.KubeConfig, getter.Namespace = &w.kubeconfig, &ns
	if err := w.helm.Init(getter, namespace, "secret"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "monitoring.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	operators, err := sandboxtest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Install(t.Context(), w.config, operators); err != nil {
		t.Fatal(err)
	}
	return w
}

// install runs `helm install --create-namespace`.
func (w *world) install(t *testing.T, name, path string, with values) {
	t.Helper()
	install := action.NewInstall(w.helm)
	install.ReleaseName, install.Namespace, install.CreateNamespace = name, namespace, true
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, patience
	if _, err := install.RunWithContext(t.Context(), load(t, path), with); err != nil {
		t.Fatalf("helm install %s: %v", name, err)
	}
}

// remove runs `helm uninstall`.
func (w *world) remove(t *testing.T, name string) {
	t.Helper()
	uninstall := action.NewUninstall(w.helm)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, patience
	if _, err := uninstall.Run(name); err != nil {
		t.Fatalf("helm uninstall %s: %v", name, err)
	}
}

// installed returns the values of the installation under test: all optional features are enabled.
func installed() values {
	return values(setter{}.set("settings.cloudProvider", "kwok").set("networkPolicy.enabled", true).
		set("serviceMonitor.enabled", true).set("prometheusRule.enabled", true).set("dashboards.enabled", true).
		set("controller.resources", values{"requests": values{"cpu": "1000m", "memory": "1024Mi"}, "limits": values{"memory": "1024Mi"}}).
		set("additionalAnnotations", values{"example.org/team": "platform"}).
		// With this setting, workloads that select pods are watched too.
		set("settings.schedulerConfig", "podTopologySpread: {defaultConstraints: [{maxSkew: 5, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}]}"))
}

func (w *world) installDefinitions(t *testing.T) {
	w.install(t, "karpenter-crd", definitionChart, values{})
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions { // the definitions become served one after the other
		list := &metav1.PartialObjectMetadataList{}
		for _, version := range definition.Spec.Versions {
			if version.Storage {
				list.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.ListKind})
			}
		}
		await(t, "the definition "+definition.Name+" to be served", func(ctx context.Context) error { return w.List(ctx, list) })
	}
}

// applyTwice applies all objects as GitOps tools do, with all checks of the server. Existing objects must not change,
// or such a tool would apply them forever. The release has another name, so that it does not take over objects of an
// earlier installation, which the releases of the guide would conflict with.
func (w *world) applyTwice(t *testing.T) {
	var all []*unstructured.Unstructured
	for _, with := range []values{onAWS(), installed()} {
		all = append(all, order{"gitops", namespace, mainChart, with}.render(t).objects...)
	}
	for _, object := range all {
		w.apply(t, object)
		// Controllers write the status of some objects; no such write may occur between the compared versions.
		await(t, "a second apply of "+object.GetKind()+" "+object.GetName()+" to change nothing", func(ctx context.Context) error {
			before := object.DeepCopy()
			if err := w.Get(ctx, client.ObjectKeyFromObject(object), before); err != nil {
				return err
			}
			after := w.apply(t, object)
			if before.GetResourceVersion() != after.GetResourceVersion() {
				return fmt.Errorf("resource version %s became %s", before.GetResourceVersion(), after.GetResourceVersion())
			}
			return nil
		})
	}
	for _, object := range all {
		if err := w.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// apply runs `kubectl apply --server-side --validate=strict`.
func (w *world) apply(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	applied := object.DeepCopy()
	err = w.Patch(t.Context(), applied, client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("gitops"), client.ForceOwnership, client.FieldValidation("Strict"))
	if err != nil {
		t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return applied
}

// lease returns the Lease of the leader election.
func lease() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("coordination.k8s.io/v1")
	object.SetKind("Lease")
	object.SetNamespace(namespace)
	object.SetName("karpenter-leader-election")
	return object
}

// released returns the archives of previously released charts.
func released(t *testing.T) []string {
	t.Helper()
	archives, err := filepath.Glob("testdata/released/karpenter-*.tgz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no released chart in testdata: %v", err)
	}
	return archives
}

// installPrevious installs the previously released chart in a namespace that has the lease of another controller.
func (w *world) installPrevious(t *testing.T) {
	foreign := lease()
	if err := w.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	archives := released(t)
	w.install(t, releaseName, archives[len(archives)-1], installed())
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Fatal(err)
	}
	if owner := foreign.GetAnnotations()["meta.helm.sh/release-name"]; owner != "" {
		t.Errorf("the lease of another controller belongs to the release %s now", owner)
	}
	if err := w.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
}

// upgrade runs `helm upgrade` from the released chart to that of the repository, twice: to a new version, and to the
// same one.
func (w *world) upgrade(t *testing.T) {
	for range 2 {
		w.upgradeTo(t, releaseName, mainChart, installed())
	}
	for _, object := range render(t, mainChart, installed()).objects {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()); err != nil {
			t.Errorf("after the upgrade: %v", err)
		}
	}
}

// upgradeTo runs `helm upgrade` with these values.
func (w *world) upgradeTo(t *testing.T, release, path string, with values) {
	t.Helper()
	// For a moment the controller owns the fields that it has corrected in a definition, and Helm fails with a
	// conflict. Users try again.
	await(t, "helm upgrade "+release, func(ctx context.Context) error {
		upgrade := action.NewUpgrade(w.helm)
		upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = namespace, kube.HookOnlyStrategy, patience
		upgrade.ServerSideApply = "auto"
		_, err := upgrade.RunWithContext(ctx, release, load(t, path), with)
		if err != nil && !strings.Contains(err.Error(), `conflicts with "karpenter-conversion"`) {
			t.Fatalf("helm upgrade: %v", err)
		}
		return err
	})
}

// uninstall checks that only the user's objects remain.
func (w *world) uninstall(t *testing.T) {
	objects := append(render(t, mainChart, installed()).objects, render(t, mainChart, onAWS()).objects...)
	w.remove(t, releaseName)
	for _, object := range objects {
		w.awaitGone(t, object)
	}
	for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount", "Service", "Lease"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(map[bool]string{true: "coordination.k8s.io/v1", false: "v1"}[kind == "Lease"])
		list.SetKind(kind + "List")
		if err := w.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, object := range list.Items {
			switch name := object.GetName(); {
			case name == "kube-root-ca.crt", name == "default", strings.HasPrefix(name, "sh.helm.release.v1.karpenter-crd."):
			default:
				t.Errorf("the %s %s remained in the namespace", kind, name)
			}
		}
	}
	for _, object := range definitions(t) {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()); err != nil {
			t.Errorf("the release of the definitions lost an object: %v", err)
		}
	}
	if err := w.Get(t.Context(), types.NamespacedName{Name: "general"}, &karpv1.NodePool{}); err != nil {
		t.Errorf("the user's NodePool: %v", err)
	}
}

// awaitGone waits until an object does not exist anymore.
func (w *world) awaitGone(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	await(t, object.GetKind()+" "+object.GetName()+" to be gone", func(ctx context.Context) error {
		err := w.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New("it is there")
		}
		return err
	})
}

// definitions returns the objects of the release that installDefinitions creates.
func definitions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return order{"karpenter-crd", namespace, definitionChart, values{}}.render(t).objects
}

// uninstallDefinitions checks that the definitions are kept, because deleting them would delete all their objects.
func (w *world) uninstallDefinitions(t *testing.T) {
	objects := definitions(t)
	w.remove(t, "karpenter-crd")
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			w.awaitGone(t, object)
			continue
		}
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetDeletionTimestamp() != nil {
			t.Errorf("the definition %s is deleted at %v (%v)", object.GetName(), object.GetDeletionTimestamp(), err)
		}
	}
	if err := w.Get(t.Context(), types.NamespacedName{Name: "general"}, &karpv1.NodePool{}); err != nil {
		t.Errorf("the user's NodePool: %v", err)
	}
}

// await polls until check returns nil. The failure contains the last error of check.
func await(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var missing error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := check(ctx); !errors.Is(err, context.DeadlineExceeded) || missing == nil {
			missing = err
		}
		return missing == nil, nil
	})
	if err != nil {
		t.Fatalf("waited %s for %s: %v", patience, what, missing)
	}
}
