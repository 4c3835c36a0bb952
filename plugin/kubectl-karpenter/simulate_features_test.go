package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// poolOfAWS returns a NodePool with its EC2NodeClass and a pod. The requirements of the pool are one line each.
func poolOfAWS(name, pod, field string, requirements ...string) string {
	return strings.NewReplacer("NAME", name, "POD", pod, "FIELD", field, "REQUIREMENTS", strings.Join(requirements, "\n      - ")).Replace(
		`apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME}
      requirements:
      - REQUIREMENTS
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: NAME}
spec:
  role: r
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: x}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: x}}]
  FIELD
---
apiVersion: v1
kind: Pod
metadata: {name: POD, namespace: app}
spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 1}}}]}
`)
}

// TestFeaturesOfTypes checks that features which only EC2 reports are assumed without access to it, and that an overlay
// gives a price to a type without one.
func TestFeaturesOfTypes(t *testing.T) {
	const overlay = "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: preview}\n" +
		"spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [x8aedz.large]}], price: '0.9'}\n"
	for name, c := range map[string]struct {
		key, value, field, more string
		want                    string // the type of the node, "" if there is none
	}{
		"nested virtualization":        {"kubernetes.io/arch", "amd64", "cpuOptions: {nestedVirtualization: enabled}", "", "c8i-flex.large"},
		"nested virtualization, on m5": {"karpenter.k8s.aws/instance-family", "m5", "cpuOptions: {nestedVirtualization: enabled}", "", ""},
		"enclaves":                     {"karpenter.k8s.aws/nitro-sandbox", `"true"`, "", "", "c6g.large"},
		"enclaves, on burstable types": {"karpenter.k8s.aws/nitro-sandbox",
			`"true"]}, {key: karpenter.k8s.aws/instance-family, operator: In, values: [t3, t3a, t4g`, "", "", ""},
		"no price":                 {"node.kubernetes.io/instance-type", "x8aedz.large", "", "", ""},
		"no price, and an overlay": {"node.kubernetes.io/instance-type", "x8aedz.large", "", overlay, "x8aedz.large"},
		"no price, and a broader overlay": {"node.kubernetes.io/instance-type", "x8aedz.large", "", strings.Replace(overlay,
			"In, values: [x8aedz.large]", "NotIn, values: [m5.large]", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := "{key: " + c.key + ", operator: In, values: [" + c.value + "]}"
			text := poolOfAWS("vm", "vm", c.field, "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}",
				"{key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a]}",
				strings.ReplaceAll(asked, "]}, {key: karpenter.k8s.aws", "]}\n      - {key: karpenter.k8s.aws")) + c.more
			out, _ := simulate(t, "", "-f", files(t, map[string]string{"all.yaml": text}), "-o", "json")
			var plan offline.LaunchAnswer
			if err := json.Unmarshal([]byte(out), &plan); err != nil {
				t.Fatal(err, out)
			}
			got := ""
			for _, n := range plan.Nodes {
				got += n.InstanceType
			}
			if got != c.want {
				t.Errorf("the node is %q, want %q:\n%s", got, c.want, out)
			}
		})
	}
}
