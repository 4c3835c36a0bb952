package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
)

// cached is a manager with a cache of informers.
type cached struct {
	manager.Manager
	log    logr.Logger
	scheme *runtime.Scheme
}

func (c *cached) GetLogger() logr.Logger     { return c.log }
func (c *cached) GetScheme() *runtime.Scheme { return c.scheme }

// TestCaptureOnSignal checks that a process that gets SIGUSR1 continues, and writes what its informers have shown it to a
// file that only its owner may read; without a writable folder the log says so, and the next signal is obeyed.
func TestCaptureOnSignal(t *testing.T) {
	folder, lines := t.TempDir(), make(chan string, 10)
	t.Setenv("TMPDIR", filepath.Join(folder, "missing"))
	w := watching(t, funcr.New(func(_, line string) { lines <- line }, funcr.Options{}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.captures(ctx) }()

	ask(t)
	if line := <-lines; !strings.Contains(line, "TMPDIR names the folder") || !strings.Contains(line, "no such file") {
		t.Errorf("without a folder: %s", line)
	}
	t.Setenv("TMPDIR", folder)
	ask(t)
	if line := <-lines; !strings.Contains(line, "wrote a capture") || !strings.Contains(line, folder) {
		t.Errorf("the log says %s", line)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	file := filepath.Join(folder, captureFile)
	if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("%v: the mode is %s", err, about.Mode())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := capture.Parse(text)
	if err != nil || len(d.Input.Cluster) != 2 || d.Options.NewPodDelay.Duration != time.Minute {
		t.Fatalf("%v: %s", err, text)
	}
	if !d.Options.Replicas || d.Options.PoolSelector != "cell=a" {
		t.Errorf("the options are %+v", d.Options)
	}
	all := string(text)
	if !strings.Contains(all, `"kind": "Pod"`) || !strings.Contains(all, `"kind": "DaemonSet"`) || strings.Contains(all, "secret") {
		t.Errorf("the capture is %s", all)
	}
}

// watching returns the wiring of a controller whose informers have shown it a pod and a DaemonSet.
func watching(t *testing.T, log logr.Logger) *wiring {
	t.Helper()
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	o := newControllerOptions()
	o.pods.Delay, o.proactive, o.selectorText = time.Minute, true, "cell=a"
	p, err := newProcess(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	w := &wiring{process: p, o: o, mgr: &cached{log: log, scheme: scheme}}
	store, err := cluster.NewStore(cluster.Config{Provider: &kwok.Provider{}, Scheme: scheme, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	informers := &informertest.FakeInformers{Scheme: scheme}
	if err := store.Watch(t.Context(), informers); err != nil {
		t.Fatal(err)
	}
	pods, err := informers.FakeInformerFor(t.Context(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	about := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web",
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "secret"}}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Args: []string{"--token=secret"},
		Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}}}}
	pods.Add(&corev1.Pod{ObjectMeta: *about.DeepCopy(), Spec: *spec.DeepCopy()})
	daemons, err := informers.FakeInformerFor(t.Context(), &appsv1.DaemonSet{})
	if err != nil {
		t.Fatal(err)
	}
	daemons.Add(&appsv1.DaemonSet{ObjectMeta: about, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: spec}}})
	w.store = store
	return w
}

// ask sends the signal to this process.
func ask(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
}
