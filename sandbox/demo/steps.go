package demo

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// demoManifest is the node class, the pool and the Deployment of the demo.
//
//go:embed scale.yaml
var demoManifest []byte

// demoCluster is the sandbox of a demo. It is supervised by this process or, when it is to be kept, by a process that
// outlives this one.
type demoCluster struct {
	config     *rest.Config
	kubeconfig string
	kubectl    []string
	supervisor int // process id
	died       func() error
	stop       func()
}

// demoObjects reads and writes the cluster's objects.
type demoObjects struct {
	client client.Client
	scheme *runtime.Scheme
}

// startCluster is the first step: it starts an empty control plane.
func (d *demo) startCluster(ctx context.Context) (string, error) {
	if err := d.clearDataDir(); err != nil {
		return "", err
	}
	wanted := d.assets
	wanted.Progress = d.progress.show
	assets, err := sandbox.Assets(ctx, wanted)
	if err != nil {
		return "", err
	}
	options := sandbox.Options{DataDir: d.dataDir, Assets: assets, Progress: d.progress.show}
	if d.keep {
		err = d.startDetached(ctx, options)
	} else {
		err = d.startAttached(ctx, options)
	}
	if err != nil {
		return "", err
	}
	talk, err := discovery.NewDiscoveryClientForConfig(d.cluster.config)
	if err != nil {
		return "", fmt.Errorf("connecting to the API server: %w", err)
	}
	version, err := talk.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reading the version of the API server: %w", err)
	}
	return version.GitVersion + " at " + d.cluster.config.Host, nil
}

func (d *demo) startAttached(ctx context.Context, options sandbox.Options) error {
	s, err := sandbox.Start(ctx, options)
	if err != nil {
		return err
	}
	d.cluster = &demoCluster{kubeconfig: s.Kubeconfig(), kubectl: s.Status().Kubectl(), supervisor: os.Getpid(),
		died: s.Err, stop: func() { _ = s.Stop() }}
	d.cluster.config, err = s.Config()
	return err
}

func (d *demo) startDetached(ctx context.Context, options sandbox.Options) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to run the supervisor: %w", err)
	}
	status, err := sandbox.Up(ctx, options, []string{self, "supervise", "--data-dir", options.DataDir})
	if err != nil {
		return err
	}
	d.cluster = &demoCluster{
		kubeconfig: status.Kubeconfig, kubectl: status.Kubectl(), supervisor: status.Supervisor,
		died: func() error {
			now, err := sandbox.ReadStatus(options.DataDir)
			if err == nil && now.Phase != sandbox.Running {
				err = fmt.Errorf("the control plane is %s: %s", now.Phase, now.Message)
			}
			return err
		},
		stop: func() { _, _ = sandbox.Down(context.WithoutCancel(ctx), options.DataDir) },
	}
	d.cluster.config, err = clientcmd.BuildConfigFromFlags("", status.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	d.cluster.config.QPS = -1
	return nil
}

// keepsake is a file that marks a data directory as a demo's, which the next demo may empty. It describes how to end
// what a demo left running.
func (d *demo) keepsake() string { return filepath.Join(d.dataDir, "demo.txt") }

// clearDataDir removes the cluster of an earlier demo. It refuses to remove anything else.
func (d *demo) clearDataDir() error {
	status, err := sandbox.ReadStatus(d.dataDir)
	if err != nil {
		return err
	}
	if status.Phase == sandbox.Running || status.Phase == sandbox.Starting || status.Phase == sandbox.Stopping {
		noted, _ := os.ReadFile(d.keepsake())
		stop := cmp.Or(strings.TrimSpace(string(noted)), "karpenter-sandbox down --data-dir "+d.dataDir)
		return fmt.Errorf("a control plane is %s in %s; set another --data-dir, or stop it: %s", status.Phase, d.dataDir, stop)
	}
	if _, err := os.Stat(filepath.Join(d.dataDir, "etcd")); err == nil {
		if _, err := os.Stat(d.marker()); err != nil {
			return cli.UsageErrorf("--data-dir %s contains a cluster that the demo did not create, want a new directory", d.dataDir)
		}
		if err := os.RemoveAll(filepath.Join(d.dataDir, "etcd")); err != nil {
			return fmt.Errorf("removing the cluster of the last demo: %w", err)
		}
	}
	if err := sandbox.MakeDataDir(d.dataDir); err != nil {
		return err
	}
	return os.WriteFile(d.marker(), []byte("This directory is for `karpenter-sandbox demo`, which empties it.\n"), 0o600)
}

func (d *demo) marker() string { return filepath.Join(d.dataDir, "demo-directory") }

// install is the second step: it installs the resource definitions.
func (d *demo) install(ctx context.Context) (string, error) {
	definitions, err := crds.Definitions()
	if err != nil {
		return "", err
	}
	d.progress.show("installing the CRDs")
	if err := sandbox.Install(ctx, d.cluster.config, definitions); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d CustomResourceDefinitions", len(definitions)), sandbox.CreateLocalService(ctx, d.cluster.config, d.service)
}

// startController is the third step.
func (d *demo) startController(ctx context.Context) (string, error) {
	var err error
	tell, provider := stories()[d.story], "kwok"
	flags, environment := tell.flags, []string(nil)
	if d.aws != nil {
		provider, environment = "aws", d.aws.environment
	}
	flags = append([]string{"--cloud-provider=" + provider}, flags...)
	if d.controller, err = startController(d.cluster.kubeconfig, filepath.Join(d.dataDir, "logs", "karpenter.log"),
		d.keep, environment, append(flags, "--karpenter-service="+d.service)...); err != nil {
		return "", err
	}
	if err := d.connect(ctx); err != nil {
		return "", err
	}
	err = d.await(ctx, time.Minute, "the controller to be ready", func() (bool, string) {
		err := d.controller.ready(ctx)
		return err == nil, fmt.Sprint(err)
	})
	return "process " + strconv.Itoa(d.controller.process.Pid) + ", provider " + provider, err
}

// apply is the fourth step: it creates the story's first objects.
func (d *demo) apply(ctx context.Context) (string, error) {
	tell := stories()[d.story]
	return tell.applied, d.createAll(ctx, tell.manifest)
}

// createAll creates the objects of a YAML text, and waits until its pools are ready.
func (d *demo) createAll(ctx context.Context, manifest []byte) error {
	var pools []string
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4<<10)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading the demo's objects: %w", err)
		}
		if err := d.objects.client.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if object.GetKind() == "NodePool" {
			pools = append(pools, object.GetName())
		}
	}
	for _, name := range pools {
		if err := d.awaitPool(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) awaitPool(ctx context.Context, name string) error {
	return d.await(ctx, time.Minute, "pool "+name+" to be ready", func() (bool, string) {
		pool := &karpv1.NodePool{}
		if err := d.objects.client.Get(ctx, types.NamespacedName{Name: name}, pool); err != nil {
			return false, err.Error()
		}
		return pool.Condition(status.ConditionReady).IsTrue(), unready(pool)
	})
}

// unready describes which conditions of a pool are missing or false.
func unready(pool *karpv1.NodePool) string {
	var wrong, open []string
	for _, c := range pool.Status.Conditions {
		switch {
		case c.IsTrue() || c.Type == status.ConditionReady:
		case c.IsFalse():
			wrong = append(wrong, c.Type+" is false: "+c.Message)
		default:
			open = append(open, c.Type)
		}
	}
	switch {
	case len(wrong) > 0:
		return strings.Join(wrong, "; ")
	case len(open) > 0:
		return "not observed yet: " + strings.Join(open, ", ")
	}
	return "not checked yet"
}

func (d *demo) connect(ctx context.Context) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme,
		karpv1.AddToScheme, kwokv1alpha1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("preparing the client: %w", err)
		}
	}
	talk, err := client.New(d.cluster.config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	d.objects = &demoObjects{client: talk, scheme: scheme}
	d.history, err = watchHistory(ctx, d.cluster.config, scheme)
	return err
}

// scale scales the Deployment and records the time.
func (d *demo) scale(ctx context.Context, replicas int) error {
	return d.scaleDeployment(ctx, demoDeployment, replicas)
}

func (d *demo) scaleDeployment(ctx context.Context, name string, replicas int) error {
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = demoNamespace, name
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	d.scaled = time.Now()
	if err := d.objects.client.Patch(ctx, deployment, patch); err != nil {
		return fmt.Errorf("scaling the Deployment %s to %d: %w", name, replicas, err)
	}
	return nil
}

// leave prints how to inspect what continues to run, and how to end it.
func (d *demo) leave() error {
	stop := fmt.Sprintf("kill %d %d", d.controller.process.Pid, d.cluster.supervisor)
	if err := os.WriteFile(d.keepsake(), []byte(stop+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the command that stops the demo: %w", err)
	}
	tool, err := program(simulator)
	if err != nil {
		return err
	}
	kubectl := strings.Join(d.cluster.kubectl, " ")
	fmt.Fprintf(d.out, `
All processes continue to run. To inspect the cluster:

  %s get nodepools,nodeclaims,nodes

To see it as a page in the browser:

  %s web --kubeconfig %s --cloud-provider kwok

To remove the pods, and 30 s later the nodes:

  %s scale deployment %s --replicas 0

To stop:

  %s
`, kubectl, tool, d.cluster.kubeconfig, kubectl, demoDeployment, stop)
	return nil
}
