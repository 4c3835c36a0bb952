package awsclients

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// The programs of Debian, whatever else is first on the PATH.
const (
	python = "/usr/bin/python3"
	cli    = "/usr/bin/aws"
)

// need skips the test if a client is missing, and fails in CI.
func need(t *testing.T) {
	t.Helper()
	_, err := os.Stat(cli)
	if err == nil {
		err = exec.CommandContext(t.Context(), python, "-c", "import boto3").Run()
	}
	if err == nil {
		_, err = exec.LookPath("jq") // in the commands of docs/aws.md
	}
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatal("CI needs boto3, the AWS CLI and jq: apt-get install -y python3-boto3 awscli jq")
	default:
		t.Skip("no boto3, AWS CLI or jq: the simulated AWS is not compared with them; on Debian: apt-get install -y python3-boto3 awscli jq")
	}
}

// sim is a simulated AWS on a port of this machine.
type sim struct {
	*testing.T
	*awssim.Cloud
	url   string
	calls string // the file of the calls that the scripts made
}

// start serves a simulation whose machines boot within a fraction of a second, and that neither lags nor throttles.
func start(t *testing.T) *sim { return startIn(t, "us-east-1") }

// startIn is start in another region.
func startIn(t *testing.T, region string) *sim {
	t.Helper()
	need(t)
	cloud, err := awssim.New(awssim.Options{Region: region, Queue: "interruptions", Seed: 7, Limits: map[string]awssim.Limit{},
		Timing: awssim.Timing{Pending: 100 * time.Millisecond, Boot: 100 * time.Millisecond, ShuttingDown: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- cloud.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the simulated AWS: %v", err)
		}
	})
	return &sim{t, cloud, "http://" + listener.Addr().String(), filepath.Join(t.TempDir(), "calls")}
}

// environment is that of a client: nothing of the user's own settings.
func (s *sim) environment() []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=" + s.TempDir(), "SIM_URL=" + s.url, "SIM_CALLS=" + s.calls, "AWS_REGION=us-east-1",
		"AWS_DEFAULT_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIDCLI", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_PAGER=", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"}
}

// script runs a script with boto3.
func (s *sim) script(name string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, python, filepath.Join("scripts", name))
	command.Env = s.environment()
	if out, err := command.CombinedOutput(); err != nil {
		s.Errorf("%s: %v\n%s", name, err, out)
	}
	if ignored := s.Ignored(); len(ignored) > 0 {
		s.Errorf("%s: accepted, and read by no action of the simulation: %v", name, ignored)
	}
}

// call is a line of the file that sim.py writes.
type call struct {
	Service, Action, Code string
	Params, Filters       []string
}

// readCalls returns the calls in a file that a script has written.
func readCalls(t *testing.T, path string) []call {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []call
	decoder := json.NewDecoder(bytes.NewReader(text))
	for decoder.More() {
		var c call
		if err := decoder.Decode(&c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}
