package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
)

// logged returns the output of the controller's log for some lines, without their times.
func logged(t *testing.T, level, encoding string, write func(logr.Logger)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	o := newControllerOptions()
	o.logLevel, o.logEncoding, o.logOutputs, o.errorOutput = level, encoding, path, "stderr"
	log, flush, err := newControllerLog(o)
	if err != nil {
		t.Fatal(err)
	}
	write(log)
	flush()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"time":"[^"]*",|"commit":"[^"]*",|\d{4}-\d\d-\d\dT\S+`).ReplaceAllString(string(text), "")
}

// reconciling returns the log that controller-runtime gives a reconciler.
func reconciling(log logr.Logger) logr.Logger {
	return log.WithValues("controller", "nodeclaim.lifecycle", "controllerGroup", "karpenter.sh", "controllerKind", "NodeClaim").
		WithValues("NodeClaim", klog.KRef("", "web-1"), "namespace", "", "name", "web-1").WithValues("reconcileID", "7")
}

// TestLogStyle checks that every line has its keys once and in one style, and that messages of libraries about
// themselves have the level debug.
func TestLogStyle(t *testing.T) {
	write := func(log logr.Logger) {
		log.Info("Starting EventSource", "source", "func source: 0x1b0c780")
		log.Info("Stopping and waiting for caches")
		log = reconciling(log)
		log.Info("launched", "provider-id", "kwok://a", "NodeClaim", "web-1", "EC2NodeClass", "c", "worker count", 3, "server-url", "u")
		log.Error(errors.New("no"), "told", "Pod", klog.KRef("shop", "cart"), "name", "own")
	}
	want := `{"level":"INFO","logger":"controller","message":"launched","controller":"nodeclaim.lifecycle","nodeClaim":"web-1","reconcileID":"7","providerID":"kwok://a","ec2NodeClass":"c","workerCount":3,"serverURL":"u"}
{"level":"ERROR","logger":"controller","message":"told","controller":"nodeclaim.lifecycle","nodeClaim":"web-1","reconcileID":"7","pod":"shop/cart","name":"own","error":"no"}
`
	if diff := cmp.Diff(want, logged(t, "info", encodingJSON, write)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	debug := logged(t, "debug", encodingJSON, write)
	switch {
	case !strings.Contains(debug, "Starting EventSource"):
		t.Errorf("at level debug: no %q in\n%s", "Starting EventSource", debug)
	case strings.Contains(debug, "func source"):
		t.Errorf("at level debug: unexpected %q in\n%s", "func source", debug)
	case !strings.Contains(debug, `"caller":"karpenter/controller_log_style_test.go:`):
		t.Errorf("at level debug: no %q in\n%s", `"caller":"karpenter/controller_log_style_test.go:`, debug)
	}
	if text := logged(t, "info", encodingConsole, write); !strings.HasPrefix(text, "\tINFO\tcontroller\tlaunched\t{") || strings.Contains(text, "commit") {
		t.Errorf("console:\n%s", text)
	}
}

func TestLowerCamel(t *testing.T) {
	for key, want := range map[string]string{"plan-id": "planID", "Node": "node", "reconcileID": "reconcileID", "PDB": "pdb", "AWSNodeTemplate": "awsNodeTemplate", "a b": "aB", "-": "-",
		"v1": "v1"} {
		if got := lowerCamel(key); got != want {
			t.Errorf("%q becomes %q, want %q", key, got, want)
		}
	}
}

// TestLogKeepsEveryInfo checks that the same message is written for each of a thousand nodes at info, and that
// repeated errors are sampled.
func TestLogKeepsEveryInfo(t *testing.T) {
	text := logged(t, "info", encodingJSON, func(log logr.Logger) {
		for i := range 1000 {
			log.Info("launched nodeclaim", "nodeClaim", fmt.Sprint(i))
			log.Error(errors.New("no"), "listing")
		}
	})
	if infos, errs := strings.Count(text, `"INFO"`), strings.Count(text, `"ERROR"`); infos != 1000 || errs > 500 {
		t.Errorf("%d lines at info, want 1000; %d errors, want few", infos, errs)
	}
}
