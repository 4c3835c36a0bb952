package workloads_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/testing/workloads"
)

func TestSnapshot(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"meta.json": `{"providerLabels": ["example.com/family"]}`,
		"instance-types.json": `{"instanceTypes": [{"name": "m.large", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "memory": "8Gi", "pods": "29"},
			"offerings": [{"zone": "a", "capacityType": "spot", "price": 0.1}]}]}`,
		"nodepools.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
			"metadata": {"name": "default", "uid": "1"}, "spec": {"template": {"spec": {
			"nodeClassRef": {"group": "example.com", "kind": "Any", "name": "any"}, "requirements": []}}}}]}`,
		"pods.json": `{"apiVersion": "v1", "kind": "PodList", "items": [
			{"metadata": {"name": "a", "namespace": "default", "uid": "2"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}]}`,
		"nodes.json": `{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n", "uid": "3"}}]}`,
		"bound-pods.json": `{"apiVersion": "v1", "kind": "PodList", "items": [
			{"metadata": {"name": "b", "namespace": "default", "uid": "4"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	snap := workloads.Snapshot(t, folder, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	switch {
	case len(snap.Pools) != 1:
		t.Errorf("%d pools, want 1: %v", len(snap.Pools), snap.Pools)
	case snap.Pools[0].Blocked != nil:
		t.Errorf("the pool is blocked because of %v", snap.Pools[0].Blocked)
	case snap.Pools[0].Types.Len() != 1:
		t.Errorf("the pool has %d types, want 1", snap.Pools[0].Types.Len())
	}
	if len(snap.Groups) != 1 || len(snap.Groups[0].Pods) != 1 {
		t.Errorf("groups %v, want one of one pod", snap.Groups)
	}
	if len(snap.Nodes) != 1 || len(snap.Nodes[0].Pods) != 1 {
		t.Errorf("nodes %v, want one with one pod", snap.Nodes)
	}
}
