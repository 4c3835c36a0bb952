package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-go/karpenter/internal/testing/scratch"
)

// These are set by TestMain.
var (
	artifacts string   // folder of this run: the binary, logs, clusters
	binary    string   // path of the karpenter under test
	plugin    string   // path of the kubectl-karpenter under test, beside it
	sandboxed string   // path of karpenter-sandbox, beside it
	common    *cluster // the cluster that most tests share
)

func TestMain(m *testing.M) {
	flag.Parse()
	waitTogether()
	log.SetLogger(logr.Discard())
	os.Exit(runTests(m))
}

// waitTogether runs more tests at a time than there are processors, unless a flag sets the number: they mostly wait.
func waitTogether() {
	const together = "test.parallel"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == together })
	if !given {
		_ = flag.Set(together, "4")
	}
}

// runTests keeps nothing of a successful run, and only the logs of a failed one.
func runTests(m *testing.M) int {
	folder, err := scratch.New("karpenter-e2e-")
	if err != nil {
		return complain(err)
	}
	artifacts = folder.Path
	code := runTogether(m)
	leave := folder.Remove
	if code != 0 {
		fmt.Fprintf(os.Stderr, "logs are in %s\n", artifacts)
		leave = folder.Keep
	}
	if err := leave(); err != nil {
		return complain(err)
	}
	return code
}

// runTogether runs the tests beside a cluster that most of them share.
func runTogether(m *testing.M) int {
	ctx := context.Background()
	for _, program := range []struct {
		path              *string
		name, module, pkg string
	}{
		{&binary, "karpenter", ".", "./cmd/karpenter"},
		{&plugin, "kubectl-karpenter", ".", "./plugin/kubectl-karpenter"},
		{&sandboxed, "karpenter-sandbox", "sandbox", "."},
	} {
		*program.path = filepath.Join(artifacts, program.name)
		build := exec.Command("go", "build", "-o", *program.path, program.pkg)
		build.Dir = filepath.Join("..", "..", program.module)
		if output, err := build.CombinedOutput(); err != nil {
			return complain(fmt.Errorf("building %s: %w\n%s", program.name, err, output))
		}
	}
	if measuring() { // without other tests
		return m.Run()
	}
	var err error
	common, err = startCluster(ctx, filepath.Join(artifacts, "shared"), "kwok")
	if err != nil {
		return complain(err)
	}
	defer common.stop()
	shared, err := startController(common, filepath.Join(artifacts, "shared", "logs", "karpenter.log"),
		append([]string{"--feature-gates=StaticCapacity=true,NodeRepair=true,SpotToSpotConsolidation=true,CapacityBuffer=true,NodeOverlay=true"}, quickTimers...)...)
	if err != nil {
		return complain(err)
	}
	common.controller = shared
	code := m.Run()
	if err := shared.stop(); err != nil && code == 0 {
		code = complain(err)
	}
	if err := common.denied(); err != nil {
		code = complain(err)
	}
	return code
}

func complain(err error) int {
	fmt.Fprintf(os.Stderr, "e2e: %v\n", err)
	return 1
}

// effort selects the number of repetitions of tests that depend on chance: in the core set, in all, nightly.
func effort(core, all, nightly int) int {
	switch os.Getenv("KARPENTER_E2E") {
	case "nightly":
		return nightly
	case "all":
		return all
	default:
		return core
	}
}
