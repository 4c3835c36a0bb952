package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// TestFactsOnlyAWSKnows checks what simulate and explain assume, and say, about the fields of a class whose effect only
// AWS or the controller's flags tell, what migrate advises, and that no node is planned for a class that would not be
// ready.
func TestFactsOnlyAWSKnows(t *testing.T) {
	const (
		selected     = "capacityReservationSelectorTerms: [{id: cr-0123456789abcdef0}]"
		reservations = "EC2NodeClass gpu: the capacity reservations that it selects are not known: taken to be none; " +
			"--cloud-provider=aws reads it"
	)
	for name, c := range map[string]struct {
		capacity, field string
		// refused is why the pod gets no node, noted what is reported beside the answer, and said what migrate reports.
		refused, noted, said string
	}{
		"reservations only": {"reserved", selected, "the pool's own requirement karpenter.sh/capacity-type In [reserved] matches none " +
			"of 1339 instance types; instance types have on-demand and spot", reservations, ""},
		"reservations, or on demand": {"reserved, on-demand", selected, "", reservations, ""},
		"a placement group": {"on-demand", "placementGroupSelector: {name: g}", "",
			"only AWS knows the placement group; it is taken as one with 7 partitions", ""},
		"an expression": {"on-demand", `kubelet: {maxPods: "max_pods / 2"}`, "", "the feature gate NodeClassCEL is taken to be on",
			"advice     spec.kubelet.maxPods: is an expression"},
		"an expression that is wrong": {"on-demand", `kubelet: {maxPods: "max_pods / "}`,
			`EC2NodeClass "gpu" is not ready: spec.kubelet.maxPods: "max_pods / " is neither`, "",
			"advice     spec.kubelet.maxPods: is an expression"},
		"an expression that fails": {"on-demand", `kubelet: {kubeReserved: {cpu: "1 - vcpus"}}`,
			`EC2NodeClass "gpu" is not ready: spec.kubelet.kubeReserved.cpu: for `, "",
			"advice     spec.kubelet.kubeReserved.cpu: is an expression"},
		"no pods": {"on-demand", "kubelet: {maxPods: 0}", `EC2NodeClass "gpu" excludes every instance type: 1339 of 1373: it has no ` +
			"pods left after reservations: spec.kubelet.maxPods is 0", "", ""},
		"an expression that leaves nothing": {"on-demand", `kubelet: {kubeReserved: {cpu: "vcpus * 1000"}}`, `EC2NodeClass "gpu" excludes ` +
			"every instance type: 1339 of 1373: it has no cpu left after reservations: spec.kubelet.kubeReserved.cpu is vcpus * 1000", "",
			"advice     spec.kubelet.kubeReserved.cpu: is an expression"},
		"user data that no node could use": {"on-demand", `userData: "MIME-Version: 1.0\nContent-Type: multipart/mixed; ` +
			`boundary=b\n\n--b\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n"`,
			`EC2NodeClass "gpu" is not ready: spec.userData`, "", "impossible spec.userData: part 1 of the MIME document has no end"},
		"nothing": {"on-demand", "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := poolOfAWS("gpu", "train", c.field, "{key: karpenter.sh/capacity-type, operator: In, values: ["+c.capacity+"]}",
				"{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}")
			folder := files(t, map[string]string{"all.yaml": text})
			var plan offline.LaunchAnswer
			out, _ := simulate(t, "", "-f", folder, "-o", "json")
			if err := json.Unmarshal([]byte(out), &plan); err != nil {
				t.Fatal(err)
			}
			refused := ""
			for _, pod := range plan.Unschedulable {
				refused += pod.Reasons[0].Message
			}
			if (refused != "") != (c.refused != "") || !strings.Contains(refused, c.refused) {
				t.Errorf("simulate refuses the pod because %q, want %q", refused, c.refused)
			}
			_, notes, _ := runBoth(t, "", "explain", "pod", "app/train", "--from", folder)
			if !strings.Contains(notes, c.noted) || c.noted == "" && strings.Contains(notes, "EC2NodeClass gpu: ") {
				t.Errorf("explain has the notes %q, want %q", notes, c.noted)
			}
			if _, report, _ := runBoth(t, "", "migrate", "-f", folder); !strings.Contains(report,
				c.said) || c.said == "" && !strings.Contains(report, "3 unchanged") {
				t.Errorf("migrate reports %q, want %q", report, c.said)
			}
		})
	}
}
