package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// tool runs a verb on the cluster, with its own environment instead of the AWS variables.
func (w *awsWorld) tool(ctx context.Context, environment []string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, plugin, append(arguments, "--kubeconfig", w.sandbox.Kubeconfig())...)
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "AWS_") })
	command.Env = append(command.Env, environment...)
	output, err := command.Output()
	return string(output), err
}

// testAWSTools checks that the tools describe a fleet on AWS correctly without querying AWS, that prices come from
// AWS on request, and that the doctor finds nothing until there is a defect.
func testAWSTools(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-tools")
	s.scale("app", 4)
	await(t, patience, "all pods to run", s.running("app", 4))
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("AWS is queried: %s", r.URL) }))
	defer silent.Close()
	silentAWS := []string{"AWS_ENDPOINT_URL=" + silent.URL, "AWS_EC2_METADATA_DISABLED=true"}
	s.toldByTop(silentAWS, "on demand those built in, of us-east-1 on ")
	s.toldByTop(w.environment, "on demand and spot those of AWS in us-east-1 at ", "--cloud-provider=aws")
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"explain", "pool", "aws-tools"}, "pool aws-tools: "},
		{[]string{"explain", "pool", "aws-tools"}, "prices: on demand those built in, of us-east-1 on "},
		{[]string{"simulate", "--live"}, "prices: on demand those built in, of us-east-1 on "},
		{[]string{"simulate", "--live", "--disrupt"}, "prices: on demand those built in, of us-east-1 on "},
	} {
		if output, err := w.tool(t.Context(), silentAWS, c.arguments...); err != nil || !strings.Contains(output, c.want) {
			t.Errorf("karpenter %v: %v, want %q in\n%s", c.arguments, err, c.want, output)
		}
	}
	s.consult("")
	w.sim.RemoveRole("AWSServiceRoleForEC2Spot")
	s.consult("SpotRoleMissing")
	w.sim.AddRole("/aws-service-role/spot.amazonaws.com/", "AWSServiceRoleForEC2Spot")
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// toldByTop compares the nodes in the output of top with the actual ones.
func (s *awsStage) toldByTop(environment []string, source string, flags ...string) {
	s.t.Helper()
	output, err := s.world.tool(s.t.Context(), environment, append([]string{"top", "-o", "json", "--filter", "aws-tools"}, flags...)...)
	var fleet struct {
		PriceSource string
		Nodes       []struct {
			Name, InstanceType, Zone, CapacityType string
			PricePerHour                           float64
		}
	}
	if err != nil || json.Unmarshal([]byte(output), &fleet) != nil {
		s.t.Fatalf("kubectl karpenter top %v: got error %v, want JSON of a fleet:\n%s", flags, err, output)
	}
	if !strings.HasPrefix(fleet.PriceSource, source) {
		s.t.Fatalf("kubectl karpenter top %v: the prices come from %q, want %q", flags, fleet.PriceSource, source)
	}
	reported := map[string]string{}
	for _, n := range fleet.Nodes {
		reported[n.Name] = fmt.Sprint(n.InstanceType, n.Zone, n.CapacityType)
		if n.PricePerHour <= 0 {
			s.t.Errorf("kubectl karpenter top %v: node %s costs %v", flags, n.Name, n.PricePerHour)
		}
	}
	for _, pod := range s.pods("app") {
		node := s.node(pod)
		if is := node.Labels[corev1.LabelInstanceTypeStable] + node.Labels[corev1.LabelTopologyZone] + node.Labels[karpv1.LabelCapacityType]; reported[node.Name] != is {
			s.t.Errorf("kubectl karpenter top %v: node %s is %q, want %q", flags, node.Name, reported[node.Name], is)
		}
	}
}

// consult waits until the doctor's only finding has the code; for an empty code, until it has no findings.
func (s *awsStage) consult(code string) {
	s.t.Helper()
	await(s.t, patience, "the doctor to find "+code, func(ctx context.Context) error {
		output, err := s.world.tool(ctx, s.world.environment, "doctor", "-o", "json", "--cloud-provider=aws", "--cluster-name=sandbox", "--interruption-queue=interruptions")
		var report struct {
			Findings []struct{ Code string }
		}
		if wrong := json.Unmarshal([]byte(output), &report); wrong != nil {
			return fmt.Errorf("%w: %w: %s", err, wrong, output)
		}
		var codes []string
		for _, f := range report.Findings {
			codes = append(codes, f.Code)
		}
		if strings.Join(codes, " ") != code || (err == nil) != (code == "") {
			return fmt.Errorf("it ended with %v and printed\n%s", err, output)
		}
		return nil
	})
}
