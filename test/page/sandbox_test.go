package page

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/crds"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// objects are a pool, a Deployment that it launches nodes for, and one that fits no instance type.
var objects = []string{`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
`, `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`, deployment("web", "3", "1"), deployment("huge", "1", "100k")}

func deployment(name, replicas, cpu string) string {
	return strings.NewReplacer("NAME", name, "REPLICAS", replicas, "CPU", cpu).Replace(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      nodeSelector: {karpenter.sh/nodepool: general}
      containers: [{name: c, image: none, resources: {requests: {cpu: "CPU"}}}]
`)
}

// TestOnSandbox opens the page of a live cluster, with a real control plane and controller: the nodes that were launched
// are on it, the pod without a place has its reason, and the page tells of a later change.
func TestOnSandbox(t *testing.T) {
	browser(t)
	s := sandboxtest.StartSandbox(t, sandboxtest.Options{ControlPlane: true})
	config, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Install(t.Context(), config, definitions); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range objects {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), object); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	start(t, "cmd/karpenter", "controller", "--cloud-provider=kwok", "--kubeconfig="+s.Kubeconfig(), "--metrics-port=0",
		"--health-probe-port=0", "--webhook-port=0", "--log-level=error")
	page := start(t, "plugin/kubectl-karpenter", "web", "--no-browser", "--interval=1s", "--cloud-provider=kwok",
		"--kubeconfig="+s.Kubeconfig())
	if !page.Scan() {
		t.Fatalf("no address was printed: %v", page.Err())
	}
	tab := openAt(t, page.Text(), 1280, 900)
	tab.shows("/fleet", `.rows?.length > 0 && d.rows.every((r) => r.pool === "general" && r.state === "ready") &&
		d.rows.reduce((n, r) => n + r.pods, 0) === 3`)
	tab.goTo("/fleet")
	if n := eval[int](tab, `document.querySelectorAll("#grid tbody tr").length`); n == 0 {
		t.Error("the table has no node")
	}
	if n := eval[int](tab, colors); n < 3 {
		t.Errorf("the picture has %d colors", n)
	}
	tab.goTo("/pending")
	if text := eval[string](tab, `document.getElementById("grid").textContent`); !strings.Contains(text, "default/huge") ||
		!strings.Contains(text, "general") {
		t.Errorf("the pod without a place and its pool are not in the table: %s", text)
	}
	tab.goTo("/fleet")
	more := &unstructured.Unstructured{}
	more.SetAPIVersion("apps/v1")
	more.SetKind("Deployment")
	more.SetNamespace("default")
	more.SetName("web")
	if err := c.Patch(t.Context(), more, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`))); err != nil {
		t.Fatal(err)
	}
	tab.until(`document.querySelector(".lead").textContent.includes(", 9 pods,")`) // it follows
	tab.quiet()
}

// shows waits until the JSON of a view, d, has the property that the expression continues.
func (s *session) shows(path, property string) {
	s.t.Helper()
	s.until(`(() => {
		const r = new XMLHttpRequest();
		r.open("GET", "` + path + `?format=json", false);
		r.send();
		const d = JSON.parse(r.responseText);
		return d` + property + `;
	})()`)
}

// start builds a program of this repository and runs it until the test ends. It returns the lines that it prints.
func start(t *testing.T, program string, arguments ...string) *bufio.Scanner {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(program))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./"+program)
	build.Dir = filepath.Join("..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", program, err, output)
	}
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, path, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lines, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // it was killed
	})
	return bufio.NewScanner(lines)
}
