package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karpenter-go/karpenter/internal/testing/fakeapi"
	"github.com/karpenter-go/karpenter/test/permission"
)

// sampleFile is where the sample of the last measurement is kept, for the fake API server.
var sampleFile = filepath.Join("..", "..", "bin", "scale", "sample.json")

// TestFake is TestLoaded with a fake API server (package fakeapi) instead of etcd and kube-apiserver, for clusters that do not
// fit this machine otherwise. It is a process of its own. Its sample is the one that was kept last, else it is taken first.
func TestFake(t *testing.T) {
	sizes := os.Getenv("KARPENTER_FAKE")
	if sizes == "" {
		t.Skip("takes minutes; KARPENTER_FAKE=5000,15000 runs it (make scale FAKE=5000)")
	}
	program := filepath.Join(artifacts, "fakeapi")
	build := exec.Command("go", "build", "-o", program, "./fakeapi")
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the fake API server: %v\n%s", err, output)
	}
	sample := keptSample(t)
	measureSizes(t, "fake.md", sizes, func(t *testing.T, nodes int) *loaded { return loadFake(t, program, sample, nodes) })
}

// keepSample stores a sample.
func keepSample(t *testing.T, sample *fakeapi.Sample) {
	t.Helper()
	text, err := json.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	write(t, kept(t, filepath.Base(sampleFile)), string(text))
}

// keptSample returns the sample that was kept last, or takes one.
func keptSample(t *testing.T) *fakeapi.Sample {
	t.Helper()
	text, err := os.ReadFile(sampleFile)
	if errors.Is(err, fs.ErrNotExist) {
		return takeSample(t)
	}
	sample := &fakeapi.Sample{}
	if err == nil {
		err = json.Unmarshal(text, sample)
	}
	if err != nil {
		t.Fatalf("reading the sample: %v", err)
	}
	t.Logf("the sample is that of %s", sampleFile)
	return sample
}

// loadFake starts a fake API server with a cluster of that size.
func loadFake(t *testing.T, program string, sample *fakeapi.Sample, nodes int) *loaded {
	t.Helper()
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	server := exec.CommandContext(ctx, program, "-sample", sampleFile, "-nodes", strconv.Itoa(nodes), "-kubeconfig", kubeconfig)
	server.Stdout, server.Stderr = os.Stderr, os.Stderr
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	c := &cluster{credentials: kubeconfig, environment: []string{mutationDetector + "false"}}
	t.Cleanup(func() {
		if c.controller != nil && c.controller.running() {
			if err := c.controller.stop(); err != nil {
				t.Error(err)
			}
		}
		cancel()
		_ = server.Wait()
	})
	await(t, 10*time.Minute, "the fake API server", func(context.Context) error {
		_, err := os.Stat(kubeconfig)
		return err
	})
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if c.Client, err = newClient(config); err != nil {
		t.Fatal(err)
	}
	l := &loaded{cluster: c, t: t, sample: sample, nodes: nodes}
	l.watchesLeases = func(t *testing.T) bool { return fakeWatchesLeases(t, config) }
	return l
}

// fakeCounts returns the requests that a fake API server has counted.
func fakeCounts(t *testing.T, config *rest.Config) []fakeapi.Count {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Get(config.Host + "/fake/counts")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	var counts []fakeapi.Count
	if err == nil {
		err = json.Unmarshal(text, &counts)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("reading the counts of the fake API server: %w", err))
	}
	return counts
}

func fakeWatchesLeases(t *testing.T, config *rest.Config) bool {
	t.Helper()
	for _, count := range fakeCounts(t, config) {
		if count.Resource == "leases" && count.Verb == "watch" {
			return true
		}
	}
	return false
}

// watchedLeases reports whether the audit log has a watch of Leases.
func (c *cluster) watchedLeases(t *testing.T) bool {
	t.Helper()
	log, err := permission.Read(c.audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range log.Allowed {
		if call.Resource == "leases" && call.Verb == "watch" {
			return true
		}
	}
	return false
}

// kind names the files of a measurement.
func (l *loaded) kind() string {
	if l.sandbox == nil {
		return "fake"
	}
	return "loaded"
}
