package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// testAssets returns the executables. The first call builds them.
func testAssets(t *testing.T) string {
	t.Helper()
	wanted := AssetsOptions{Binaries: os.Getenv("KUBEBUILDER_ASSETS"), Progress: func(message string) { t.Log(message) }}
	assets, err := Assets(t.Context(), wanted)
	if err != nil {
		t.Fatal(err)
	}
	return assets
}

// startTest starts a sandbox that ends with the test.
func startTest(t *testing.T, options Options) *Sandbox {
	t.Helper()
	s, err := Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func testClient(t *testing.T, s *Sandbox) kubernetes.Interface {
	t.Helper()
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// wantError reports an error that lacks one of the texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want %q in it", err, text)
		}
	}
}

// eventually fails the test unless check succeeds within half a minute.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := until(ctx, what, check); err != nil {
		t.Fatal(err)
	}
}

// TestDeploymentRunsOnASimulatedNode checks a whole control plane: the controllers create pods of a Deployment, the
// scheduler binds them to a simulated node, kwok runs them, finalizes deleted ones and renews the node's lease.
func TestDeploymentRunsOnASimulatedNode(t *testing.T) {
	s := startTest(t, Options{DataDir: t.TempDir(), Assets: testAssets(t)})
	client := testClient(t, s)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "simulated", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}},
	}
	node.Status.Capacity = node.Status.Allocatable
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deployment := inflate(3)
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three pods that run", func(ctx context.Context) error { return running(ctx, client, 3) })
	eventually(t, "the node's lease", func(ctx context.Context) error {
		_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "simulated", metav1.GetOptions{})
		return err
	})

	none := []byte(`{"spec":{"replicas":0}}`)
	if _, err := client.AppsV1().Deployments("default").Patch(t.Context(), "inflate", types.MergePatchType, none, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the pods", func(ctx context.Context) error { return running(ctx, client, 0) })
}

func inflate(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "inflate"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "inflate"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}},
			},
		},
	}
}

func running(ctx context.Context, client kubernetes.Interface, want int) error {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning && pods.Items[i].Spec.NodeName == "simulated" {
			ready++
		}
	}
	if ready != want || len(pods.Items) != want {
		return fmt.Errorf("%d pods, %d of them run, want %d", len(pods.Items), ready, want)
	}
	return nil
}

// TestSideBySideAndAgain checks that two sandboxes run side by side independently, that a directory runs at most one
// sandbox, and that a restarted sandbox keeps its address and data.
func TestSideBySideAndAgain(t *testing.T) {
	assets, first, second := testAssets(t), t.TempDir(), t.TempDir()
	one := startTest(t, Options{DataDir: first, Assets: assets, Components: APIOnly()})
	two := startTest(t, Options{DataDir: second, Assets: assets, Components: APIOnly()})

	var runningError *RunningError
	if _, err := Start(t.Context(), Options{DataDir: first, Assets: assets, Components: APIOnly()}); !errors.As(err, &runningError) {
		t.Errorf("starting a second sandbox in a directory: got %v, want a RunningError", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-in-one"}}
	if _, err := testClient(t, one).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := testClient(t, two).CoreV1().Namespaces().Get(t.Context(), "only-in-one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the namespace in the other sandbox: got %v, want not found", err)
	}
	server := one.Status().Server
	if err := one.Stop(); err != nil {
		t.Fatalf("stopping: %v", err)
	}
	if status, err := ReadStatus(first); err != nil || status.Phase != Stopped {
		t.Errorf("status after stopping: %v %v, want stopped", status.Phase, err)
	}
	again := startTest(t, Options{DataDir: first, Assets: assets, Components: APIOnly()})
	if got := again.Status().Server; got != server {
		t.Errorf("address after a restart: %s, want %s as before", got, server)
	}
	if _, err := testClient(t, again).CoreV1().Namespaces().Get(t.Context(), "only-in-one", metav1.GetOptions{}); err != nil {
		t.Errorf("data after a restart: %v", err)
	}
}

// TestOnlyOwnCertificatesGetIn checks that only clients with a certificate of the sandbox's own CA are admitted.
func TestOnlyOwnCertificatesGetIn(t *testing.T) {
	s := startTest(t, Options{DataDir: t.TempDir(), Assets: testAssets(t), Components: APIOnly()})
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData = nil, nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
		t.Errorf("listing secrets without a certificate: got %v, want a refusal", err)
	}
	anonymous := probe{url: "https://" + address(s.plan.ports[etcd]) + "/health", authority: s.plan.pki("etcd-ca.crt")}
	connection, err := anonymous.http()
	if err != nil {
		t.Fatal(err)
	}
	if err := anonymous.check(t.Context(), connection); err == nil {
		t.Error("etcd accepts a client without a certificate")
	}
}

// TestDeadComponentIsReported checks that the death of a component stops the others, and that the error and the
// status name the component and its log.
func TestDeadComponentIsReported(t *testing.T) {
	directory := t.TempDir()
	s := startTest(t, Options{DataDir: directory, Assets: testAssets(t), Components: APIOnly()})
	components := s.Status().Components
	if err := syscall.Kill(components[1].Process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	var dead *DeadError
	if !errors.As(s.Err(), &dead) {
		t.Fatalf("got error %v, want the death of a component", s.Err())
	}
	if dead.Component != apiserver || dead.How != "signal: killed" {
		t.Fatalf("%s died by %q, want %s by a signal", dead.Component, dead.How, apiserver)
	}
	status, err := ReadStatus(directory)
	if err != nil {
		t.Fatal(err)
	}
	if status.Phase != Failed || !strings.Contains(status.Message, components[1].Log) {
		t.Errorf("status %s %q, want failed and the name of the log", status.Phase, status.Message)
	}
	for _, component := range components {
		expectGone(t, component.Process)
	}
}

// TestComponentThatCannotStart checks that a component that rejects its arguments is reported with its output.
func TestComponentThatCannotStart(t *testing.T) {
	_, err := Start(t.Context(), Options{
		DataDir: t.TempDir(), Assets: testAssets(t), Components: APIOnly(),
		ExtraArgs: map[string][]string{apiserver: {"--no-such-flag"}},
	})
	var dead *DeadError
	if !errors.As(err, &dead) || dead.Component != apiserver {
		t.Errorf("got error %v, want the death of %s", err, apiserver)
	}
	wantError(t, err, "unknown flag: --no-such-flag")
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("got error %q, want one line", err)
	}
}

// TestNotReadyInTime checks that a component that does not become ready in time is reported with its log.
func TestNotReadyInTime(t *testing.T) {
	_, err := Start(t.Context(), Options{
		DataDir: t.TempDir(), Assets: testAssets(t), Components: APIOnly(), ReadyTimeout: time.Millisecond,
	})
	var slow *NotReadyError
	if !errors.As(err, &slow) || slow.What != etcd {
		t.Errorf("got error %v, want that etcd is not ready", err)
	}
	wantError(t, err, "etcd.log")
}

// TestPortTaken checks that a port that another program has taken is reported, with what to do.
func TestPortTaken(t *testing.T) {
	directory, assets := t.TempDir(), testAssets(t)
	l := layout(directory)
	if err := MakeDataDir(directory); err != nil {
		t.Fatal(err)
	}
	ports, err := ensurePorts(l, []string{etcd, etcdPeer, apiserver})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address(ports[apiserver]))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{DataDir: directory, Assets: assets, Components: APIOnly()})
	var taken *PortTakenError
	switch {
	case !errors.As(err, &taken):
		t.Errorf("got error %v, want one about a port", err)
	case taken.Port != ports[apiserver]:
		t.Errorf("port %d is reported, want %d", taken.Port, ports[apiserver])
	case taken.Component != apiserver:
		t.Errorf("the port is that of %s, want %s", taken.Component, apiserver)
	}
	wantError(t, err, l.ports())
	if status, err := ReadStatus(directory); err != nil || status.Phase != Failed {
		t.Errorf("status %v %v, want failed", status.Phase, err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	startTest(t, Options{DataDir: directory, Assets: assets, Components: APIOnly()})
}

// TestBadOptions checks that invalid options are rejected before any component runs.
func TestBadOptions(t *testing.T) {
	assets := testAssets(t)
	theirs := t.TempDir()
	file := filepath.Join(theirs, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options   Options
		want      string
		directory bool // a *DirectoryError
	}{
		"no directory":      {Options{Assets: assets}, `data directory "": it has no name`, true},
		"unknown component": {Options{DataDir: t.TempDir(), Assets: assets, Components: []string{"kubelet"}}, `component "kubelet": want one of etcd,`, false},
		"no executables":    {Options{DataDir: t.TempDir(), Assets: t.TempDir()}, "no etcd in the sandbox assets", false},
		"not a directory":   {Options{DataDir: file, Assets: assets}, "it is not a directory", true},
		"below a file":      {Options{DataDir: filepath.Join(file, "below"), Assets: assets}, "it is not a directory", true},
		"cannot be made":    {Options{DataDir: "/proc/sandbox", Assets: assets}, "making it: ", true},
		"foreign files":     {Options{DataDir: theirs, Assets: assets}, "it is not empty and not a sandbox (file is in it)", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			var wrong *DirectoryError
			if errors.As(err, &wrong) != test.directory {
				t.Errorf("%v: a DirectoryError %t, want %t", err, !test.directory, test.directory)
			}
		})
	}
	if entries, err := os.ReadDir(theirs); err != nil || len(entries) != 1 {
		t.Errorf("an unrelated directory has %v (%v), want it unchanged", entries, err)
	}
	if err := CheckDataDir(filepath.Join(theirs, "new")); err != nil {
		t.Errorf("a directory that is not there yet: %v", err)
	}
}

func expectGone(t *testing.T, process int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the end of process %d", process), func(context.Context) error {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
		if err != nil || strings.Contains(string(content), ") Z ") {
			return nil
		}
		return errors.New("it is still there")
	})
}
