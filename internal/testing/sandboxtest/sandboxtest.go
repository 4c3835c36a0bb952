// Package sandboxtest gives a test a real Kubernetes API server, or a whole control plane, of its own.
//
//	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: crds})
//
// It replaces envtest, with the executables that this repository builds: nothing is downloaded and no test is
// skipped. The executables are those of KUBEBUILDER_ASSETS if that is set, else those that sandbox.Assets finds or
// builds (once, into a cache; the first build takes minutes). An API server is ready in 2 to 3 seconds, a whole
// control plane in about 5. Everything ends with the test, also when the test's process is killed.
//
// The logs of a failing test are kept for a day and their path is printed. Nothing remains of tests that were killed.
package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/internal/testing/scratch"
)

// Options configures a test's cluster.
type Options struct {
	// Definitions and Manifests (YAML, several documents each) are the custom resources that the API server serves.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	Manifests   [][]byte
	// ControlPlane adds controller manager, scheduler and simulated kubelets to etcd and the API server.
	ControlPlane bool
	// ExtraArgs are flags by component, such as "kube-apiserver".
	ExtraArgs map[string][]string
}

// Start runs a cluster for the test and returns the administrator's connection, without client-side rate limits.
func Start(t testing.TB, options Options) *rest.Config {
	t.Helper()
	config, err := StartSandbox(t, options).Config()
	if err != nil {
		t.Fatal(err)
	}
	definitions := options.Definitions
	for _, manifest := range options.Manifests {
		parsed, err := Parse(manifest)
		if err != nil {
			t.Fatalf("reading resource definitions: %v", err)
		}
		definitions = append(definitions, parsed...)
	}
	if err := sandbox.Install(t.Context(), config, definitions); err != nil {
		t.Fatal(err)
	}
	return config
}

// StartSandbox runs a cluster for the test, without custom resources.
func StartSandbox(t testing.TB, options Options) *sandbox.Sandbox {
	t.Helper()
	components := sandbox.APIOnly()
	if options.ControlPlane {
		components = nil
	}
	assets := Assets(t)
	folder, err := scratch.New("sandboxtest")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sandbox.Start(t.Context(), sandbox.Options{
		DataDir: filepath.Join(folder.Path, "data"), Assets: assets, Components: components, ExtraArgs: options.ExtraArgs,
	})
	if err != nil {
		_ = folder.Keep()
		t.Fatalf("starting a cluster for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Err(); err != nil {
			t.Errorf("the test's cluster ended: %v", err)
		}
		s.Kill()
		leave := folder.Remove
		if t.Failed() {
			leave = folder.Keep
			t.Logf("the logs of the test's cluster are in %s", folder.Path)
		}
		if err := leave(); err != nil {
			t.Errorf("removing the test's cluster: %v", err)
		}
	})
	return s
}

// Assets returns the folder of the control plane's executables. It builds them if needed.
func Assets(t testing.TB) string {
	t.Helper()
	assets, err := sandbox.Assets(context.WithoutCancel(t.Context()), sandbox.AssetsOptions{
		Binaries: os.Getenv("KUBEBUILDER_ASSETS"), Progress: func(message string) { t.Log(message) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return assets
}

// Parse reads the resource definitions of a manifest.
func Parse(manifest []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4<<10)
	for {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		err := decoder.Decode(definition)
		if errors.Is(err, io.EOF) {
			return definitions, nil
		}
		if err != nil {
			return nil, err
		}
		if definition.Name != "" {
			definitions = append(definitions, definition)
		}
	}
}
