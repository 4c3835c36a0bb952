package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// simProcess is `karpenter-sandbox aws-sim` in a process of its own, as in docs/sandbox.md.
type simProcess struct {
	t        *testing.T
	endpoint string
	command  *exec.Cmd
}

// startSim starts it beside a cluster and reads the address that it prints.
func startSim(t *testing.T, c *cluster) *simProcess {
	t.Helper()
	command := exec.Command(sandboxed, "aws-sim", "--listen", "127.0.0.1:0", "--kubeconfig", c.sandbox.Kubeconfig(), "--lag", "500ms")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s := &simProcess{t: t, command: command}
	t.Cleanup(func() {
		if command.ProcessState == nil {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("reading its address: %v", err)
	}
	endpoint, printed := strings.CutPrefix(strings.TrimSpace(line), "AWS_ENDPOINT_URL=")
	if !printed {
		t.Fatalf("it prints %q, want AWS_ENDPOINT_URL=...", line)
	}
	s.endpoint = endpoint
	return s
}

// simInstance is an instance in the format of the admin API.
type simInstance struct {
	ID             string `json:"id"`
	State          string `json:"state"`
	PrivateDNSName string `json:"privateDnsName"`
}

// running returns the running instances.
func (s *simProcess) running(ctx context.Context) ([]simInstance, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.endpoint+"/_admin/instances", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var all, alive []simInstance
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		return nil, err
	}
	for _, i := range all {
		if i.State == "running" {
			alive = append(alive, i)
		}
	}
	return alive, nil
}

// post triggers an event in the simulated AWS.
func (s *simProcess) post(verb, body string) {
	s.t.Helper()
	response, err := http.Post(s.endpoint+"/_admin/"+verb, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s %s", verb, response.Status, answer)
	}
}

// stop interrupts the process.
func (s *simProcess) stop() {
	s.t.Helper()
	if err := s.command.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	if err := s.command.Wait(); err != nil {
		s.t.Errorf("it ended with %v", err)
	}
}

// TestAWSSimVerb uses the sandbox's simulated AWS as in its page: instances become nodes of the cluster, an
// interrupted one is replaced, and when the pods are deleted, all instances are removed.
func TestAWSSimVerb(t *testing.T) {
	if effort(0, 1, 1) == 0 {
		t.Skip("make e2e runs it: the core set has the same AWS without the verb")
	}
	t.Parallel()
	w := &awsWorld{cluster: ownClusterOf(t, "aws")}
	w.log = filepath.Join(filepath.Dir(w.sandbox.Kubeconfig()), "karpenter.log")
	sim := startSim(t, w.cluster)
	w.environment = []string{"AWS_ENDPOINT_URL=" + sim.endpoint, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=any",
		"AWS_SECRET_ACCESS_KEY=any", "AWS_EC2_METADATA_DISABLED=true"}
	(&stage{cluster: w.cluster, t: t, name: "aws"}).apply(filepath.Join("testdata", "aws-class.yaml"))
	w.runController(t, w.log, append([]string{"--cloud-provider=aws", "--cluster-name=sandbox", "--interruption-queue=sandbox"},
		quickTimers...)...)
	s := w.stage(t, "aws-verb")
	s.require(among("karpenter.sh/capacity-type", "spot"), among("karpenter.k8s.aws/instance-family", "c6g", "m6g", "c6i", "m6i"))
	s.scale("app", 4)
	await(t, patience, "all pods to run", s.running("app", 4))
	taken := map[string]bool{}
	await(t, patience, "every instance to be a node", func(ctx context.Context) error {
		instances, err := sim.running(ctx)
		if err != nil {
			return err
		}
		nodes := map[string]bool{}
		for _, pod := range s.pods("app") {
			nodes[pod.Spec.NodeName] = true
		}
		clear(taken)
		for _, i := range instances {
			taken[i.PrivateDNSName] = true
			delete(nodes, i.PrivateDNSName)
		}
		if len(instances) == 0 || len(nodes) > 0 {
			return fmt.Errorf("%d instances run, and no instances are the nodes %v", len(instances), nodes)
		}
		return nil
	})
	instances, err := sim.running(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sim.post("interrupt", fmt.Sprintf(`{"id": %q}`, instances[0].ID))
	await(t, patience, "the pods to run elsewhere", func(ctx context.Context) error {
		for _, pod := range s.pods("app") {
			if pod.Spec.NodeName == instances[0].PrivateDNSName {
				return fmt.Errorf("pod %s is on %s", pod.Name, pod.Spec.NodeName)
			}
		}
		return s.stage.running("app", 4)(ctx)
	})
	s.scale("app", 0)
	await(t, max(patience, 4*time.Minute), "all instances to end", func(ctx context.Context) error {
		instances, err := sim.running(ctx)
		if c := s.ledger.count(s.name); err == nil && len(instances)+c.claims+c.nodes > 0 {
			err = fmt.Errorf("%d instances run, %d claims and %d nodes are there", len(instances), c.claims, c.nodes)
		}
		return err
	})
	sim.stop()
}
