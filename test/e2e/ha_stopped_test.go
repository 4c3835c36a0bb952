package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/test/permission"
)

// heldByAnother fails until the Lease has another holder.
func (c *cluster) heldByAnother(than string) func(context.Context) error {
	return func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "karpenter-leader-election"}, lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == than {
			return errors.New("the Lease has no new holder")
		}
		return nil
	}
}

// lines returns the messages of a log from an offset on.
func lines(t *testing.T, log string, from int) []string {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for line := range bytes.Lines(text[from:]) {
		var entry struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(line, &entry) == nil {
			messages = append(messages, entry.Message)
		}
	}
	return messages
}

// ownToken writes a kubeconfig with another token of the controllers' account, by which the audit log tells the requests
// of one process from those of another, and returns its path.
func (c *cluster) ownToken(t *testing.T) string {
	t.Helper()
	config, err := c.sandbox.Config()
	if err != nil {
		t.Fatal(err)
	}
	text, err := permission.Kubeconfig(t.Context(), config, account)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "own.kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writes returns what the process with the kubeconfig has written, by the audit log of the API server.
func (c *cluster) writes(t *testing.T, kubeconfig string) []permission.Write {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	credential, err := permission.Credential(text)
	if err != nil {
		t.Fatal(err)
	}
	writes, err := permission.Writes(c.audit, credential)
	if err != nil {
		t.Fatal(err)
	}
	return writes
}

// checkWrites checks that the process with the kubeconfig has written before another process acquired the Lease, and
// nothing since. Only writes until the Lease has the next holder count.
func (c *cluster) checkWrites(t *testing.T, kubeconfig string, acquired *coordinationv1.Lease) {
	t.Helper()
	from, now := acquired.Spec.AcquireTime.Time, c.lease(t)
	led := 0
	for _, w := range c.writes(t, kubeconfig) {
		switch {
		case w.At.Before(from):
			led++
		case *now.Spec.LeaseTransitions != *acquired.Spec.LeaseTransitions && !w.At.Before(now.Spec.AcquireTime.Time):
		default:
			t.Errorf("the old leader wrote after the Lease was acquired at %s: %s", from.Format(time.RFC3339Nano), w)
		}
	}
	if led == 0 {
		t.Error("the audit log has no writes of the old leader before it was stopped, so that the test shows nothing")
	}
}

// TestStoppedLeader stops the leader for longer than the validity of its Lease, while more pods are created, and
// continues it beside the new leader. By the audit log of the API server it writes nothing from the time on at which
// the other process has acquired the Lease, and it becomes a standby.
func TestStoppedLeader(t *testing.T) {
	only(t)
	c := ownCluster(t)
	s := newStage(t, c, "crash")
	const lease = "--leader-election-lease=10s"
	c.runController(t, filepath.Join(artifacts, "stopped.log"), lease)
	before := s.ledger.count(s.name)
	s.scale("app", 3) // when this pod runs, the controller leads
	await(t, patience, "the leader to be at work", s.running("app", 3))
	old, holder := c.controller, *c.lease(t).Spec.HolderIdentity
	standby, err := startController(c, filepath.Join(artifacts, "stopped-standby.log"), lease, "--kubeconfig="+c.ownToken(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.kill)
	await(t, patience, "the standby to be ready", standby.ready)

	if err := syscall.Kill(old.process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped, err := os.ReadFile(old.log)
	if err != nil {
		t.Fatal(err)
	}
	await(t, patience, "another process to lead", c.heldByAnother(holder))
	acquired := c.lease(t)
	// Both see the same pods at the same time: those of the new leader, and those that the old one finds when it
	// continues.
	s.scale("app", 12)
	if err := syscall.Kill(old.process.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.scale("app", 24)
	await(t, patience, "all pods to run", s.running("app", 24))
	await(t, patience, "the old leader to stand by", func(context.Context) error {
		for _, message := range lines(t, old.log, len(stopped)) {
			if strings.Contains(message, "starting again as a standby") {
				return nil
			}
		}
		return fmt.Errorf("its log is %s", old.log)
	})
	c.checkWrites(t, c.kubeconfig(), acquired)
	s.checkBought("the leader was stopped", before, 8)
}
