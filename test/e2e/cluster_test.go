package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/internal/testing/scratch"
	"github.com/karpenter-go/karpenter/test/permission"
)

// cluster is a control plane with Karpenter's resource definitions.
type cluster struct {
	client.Client
	sandbox    *sandbox.Sandbox
	ledger     *ledger
	controller *controller // the running controller, nil if there is none
	audit      string      // the API server's audit log of the controllers' requests
	// credentials is the path of the controllers' kubeconfig, "" for the one beside the sandbox's.
	credentials string
	// environment holds additional environment variables of the controller, as NAME=value.
	environment []string
	end         context.CancelFunc
}

// startCluster starts a control plane whose controllers use the account of the chart for a provider. manager are
// additional flags of its controller manager.
func startCluster(ctx context.Context, directory, provider string, manager ...string) (*cluster, error) {
	c, err := startOf(ctx, sandbox.Options{DataDir: directory, ExtraArgs: map[string][]string{"kube-controller-manager": manager}}, provider)
	if err != nil {
		return nil, err
	}
	if err := c.watch(ctx); err != nil {
		c.sandbox.Kill()
		return nil, err
	}
	return c, nil
}

// startOf is like startCluster, for a control plane with selected components, and without a ledger.
func startOf(ctx context.Context, options sandbox.Options, provider string) (*cluster, error) {
	assets, err := sandbox.Assets(ctx, sandbox.AssetsOptions{
		Binaries: os.Getenv("KUBEBUILDER_ASSETS"), Progress: func(message string) { fmt.Fprintln(os.Stderr, message) },
	})
	if err != nil {
		return nil, err
	}
	log, err := os.MkdirTemp(artifacts, "audit-")
	if err != nil {
		return nil, err
	}
	flags, audit, err := permission.Arguments(log, account)
	if err != nil {
		return nil, err
	}
	options.Assets = assets
	if options.ExtraArgs == nil {
		options.ExtraArgs = map[string][]string{}
	}
	options.ExtraArgs["kube-apiserver"] = append(flags, options.ExtraArgs["kube-apiserver"]...)
	s, err := sandbox.Start(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("starting the cluster: %w", err)
	}
	c := &cluster{sandbox: s, audit: audit}
	if err := c.connect(ctx, provider); err != nil {
		s.Kill()
		return nil, err
	}
	return c, nil
}

func (c *cluster) connect(ctx context.Context, provider string) error {
	config, err := c.sandbox.Config()
	if err != nil {
		return err
	}
	definitions, err := crds.Definitions()
	if err != nil {
		return err
	}
	if err := sandbox.Install(ctx, config, definitions); err != nil {
		return err
	}
	if c.Client, err = newClient(config); err != nil {
		return err
	}
	return c.employ(ctx, config, provider)
}

// newClient returns a client that knows all kinds of the tests.
func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, eventsv1.AddToScheme, coordinationv1.AddToScheme, rbacv1.AddToScheme,
		autoscalingv1beta1.AddToScheme, karpv1.AddToScheme, karpv1alpha1.AddToScheme, karpv1alpha5.AddToScheme, kwokv1alpha1.AddToScheme, awsv1.AddToScheme, awsv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// watch opens the ledger.
func (c *cluster) watch(ctx context.Context) error {
	config, err := c.sandbox.Config()
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	c.ledger, err = openLedger(watching, config, c.Scheme())
	return err
}

func (c *cluster) stop() {
	if c.end != nil {
		c.end()
	}
	c.sandbox.Kill()
}

// ownCluster starts a cluster for one test, without a controller.
func ownCluster(t *testing.T) *cluster {
	t.Helper()
	return ownClusterOf(t, "kwok")
}

// ownClusterOf is like ownCluster, for another provider, or with more flags of the controller manager.
func ownClusterOf(t *testing.T, provider string, manager ...string) *cluster {
	t.Helper()
	directory, err := os.MkdirTemp(artifacts, "own-")
	if err != nil {
		t.Fatal(err)
	}
	c, err := startCluster(t.Context(), directory, provider, manager...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.close(t)
		giveBack(t, directory, filepath.Dir(c.audit))
	})
	return c
}

// close ends a test's own cluster and its controller, which must not have been denied any request.
func (c *cluster) close(t *testing.T) {
	if c.controller != nil && c.controller.running() {
		if err := c.controller.stop(); err != nil {
			t.Error(err)
		}
	}
	if err := c.denied(); err != nil {
		t.Error(err)
	}
	c.stop()
}

// giveBack frees the disk space of a case that has ended. The logs of a failed one are kept. Clusters take 100 MB and
// more.
func giveBack(t *testing.T, folders ...string) {
	t.Helper()
	away := os.RemoveAll
	if t.Failed() {
		away = scratch.KeepLogs
	}
	for _, folder := range folders {
		if err := away(folder); err != nil {
			t.Error(err)
		}
	}
}

// await polls until check returns nil. The failure contains the last error of check.
func await(t *testing.T, patience time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	var missing error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := check(ctx); !errors.Is(err, context.DeadlineExceeded) || missing == nil {
			missing = err
		}
		return missing == nil, nil
	})
	if err != nil {
		t.Fatalf("waited %s for %s: %v", patience, what, missing)
	}
}

// minor returns the minor version of the cluster's Kubernetes: X of 1.X.
func (c *cluster) minor(t *testing.T) int {
	t.Helper()
	config, err := c.sandbox.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	running, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	minor, err := strconv.Atoi(strings.TrimSuffix(running.Minor, "+"))
	if err != nil {
		t.Fatal(err)
	}
	return minor
}

// patience is the deadline of waits whose duration is not tested.
const patience = 2 * time.Minute
