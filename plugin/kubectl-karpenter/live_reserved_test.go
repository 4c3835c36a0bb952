package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// reservedNodes are pods that need a node each, and a pool that allows them reserved capacity.
func reservedNodes(pods int) (pool, web string) {
	pool = strings.Replace(awsPoolYAML, "[on-demand]", "[reserved, on-demand]", 1)
	return pool, fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
        {labelSelector: {matchLabels: {app: web}}, topologyKey: kubernetes.io/hostname}]}}
      containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
`, pods)
}

// capacityTypes counts the new nodes of a plan by capacity type.
func capacityTypes(a offline.LaunchAnswer) map[string]int {
	count := map[string]int{}
	for _, n := range a.Nodes {
		count[n.CapacityType]++
	}
	return count
}

// TestSimulateReservations checks that reservations have the room that AWS reports if it is queried, that a capture
// keeps it, and that otherwise the answer says that it is not known.
func TestSimulateReservations(t *testing.T) {
	sim := simulatedAWS(t)
	id := sim.AddReservation(awssim.CapacityReservation{Type: "m6g.large", Zone: "us-east-1b", Criteria: "targeted", Total: 2})
	pool, web := reservedNodes(5)
	class := awsClassYAML + "  capacityReservationSelectorTerms: [{id: " + id + "}]\n"
	listed := awsStatusYAML + "  capacityReservations: [{id: " + id + ", instanceType: m6g.large, availabilityZone: " +
		"us-east-1b, ownerID: '111122223333', " +
		"instanceMatchCriteria: targeted, reservationType: default, state: active}]\n"
	capture := t.TempDir() + "/kept.json"
	for _, c := range []struct {
		name, status string
		args         []string
		reserved     int
		says         string
	}{
		{"AWS", listed, []string{"--cloud-provider=aws"}, 2, ""},
		{"AWS, without status", awsStatusYAML, []string{"--cloud-provider=aws", "--capture", capture}, 2, ""},
		{"files", listed, nil, 0, "EC2NodeClass general: the room in " + id + " is not known: taken to be used up; " +
			"--cloud-provider=aws reads it"},
		{"files without status", awsStatusYAML, nil, 0,
			"EC2NodeClass general: the capacity reservations that it selects are not known: taken to be none; --cloud-provider=aws reads it"},
		{"gate off", listed, []string{"--feature-gates=ReservedCapacity=false"}, 0, ""},
	} {
		folder := files(t, map[string]string{"pool.yaml": pool, "class.yaml": class + c.status, "web.yaml": web})
		out, progress, err := runBoth(t, "", append([]string{"simulate", "-f", folder, "-o", "json"}, c.args...)...)
		var a offline.LaunchAnswer
		if decoded := json.Unmarshal([]byte(out), &a); decoded != nil || err != nil {
			t.Fatalf("%s: %v, %v\n%s", c.name, err, decoded, out)
		}
		if got := capacityTypes(a); got["reserved"] != c.reserved || len(a.Nodes) != 5 {
			t.Errorf("%s: %v, want %d reserved of 5", c.name, got, c.reserved)
		}
		for _, n := range a.Nodes {
			if n.CapacityType == "reserved" && (n.InstanceType != "m6g.large" || n.Zone != "us-east-1b") {
				t.Errorf("%s: reserved %s in %s", c.name, n.InstanceType, n.Zone)
			}
		}
		if c.says == "" && strings.Contains(progress, "taken to be") || !strings.Contains(progress, c.says) {
			t.Errorf("%s: it prints %q, want %q", c.name, progress, c.says)
		}
	}
	// A dedicated reservation is for pools that allow no other tenancy.
	own := sim.AddReservation(awssim.CapacityReservation{Type: "m6g.large", Zone: "us-east-1b", Criteria: "targeted", Total: 3,
		Tenancy: "dedicated"})
	class = strings.Replace(class, id, own, 1) + awsStatusYAML
	for tenancy, want := range map[string]int{"dedicated": 3, "default": 0, "dedicated, default": 0} {
		asks := pool + "      - {key: karpenter.k8s.aws/instance-tenancy, operator: In, values: [" + tenancy + "]}\n"
		folder := files(t, map[string]string{"pool.yaml": asks, "class.yaml": class, "web.yaml": web})
		if got := capacityTypes(simulateJSON(t, "-f", folder, "--cloud-provider=aws")); got["reserved"] != want {
			t.Errorf("tenancy %s: %v, want %d reserved", tenancy, got, want)
		}
	}
	noAWS(t)
	if got := capacityTypes(simulateJSON(t, "-f", capture)); got["reserved"] != 2 {
		t.Errorf("from the capture: %v, want 2 reserved", got)
	}
}
