package migrate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// groupFields contains additional fields of a group, and their results.
var groupFields = []struct {
	fields, pool, class string // paths, and the expected values as JSON
	want                string
	notes               []string
}{
	{"spot: false", "", "blockDeviceMappings", `[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"80Gi","volumeType":"gp3"}}]`, nil},
	{"volumeSize: 10, volumeType: gp2", "", "blockDeviceMappings",
		`[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"10Gi","volumeType":"gp2"}}]`, nil},
	{"volumeName: /dev/sda1", "", "blockDeviceMappings",
		`[{"deviceName":"/dev/sda1","ebs":{"volumeSize":"80Gi","volumeType":"gp3"},"rootVolume":true}]`, nil},
	{"additionalVolumes: [{volumeName: /dev/sdb, snapshotID: snap-1}]", "", "blockDeviceMappings",
		`[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"80Gi","volumeType":"gp3"}},{"deviceName":"/dev/sdb","ebs":{"snapshotID":"snap-1","volumeType":"gp3"}}]`, nil},
	{"spot: false", "", "metadataOptions", `{"httpPutResponseHopLimit":2,"httpTokens":"required"}`, nil},
	{"disableIMDSv1: false", "", "metadataOptions", `{"httpPutResponseHopLimit":2,"httpTokens":"optional"}`, nil},
	{"disablePodIMDS: true, disableIMDSv1: false", "", "metadataOptions", `{"httpPutResponseHopLimit":1,"httpTokens":"required"}`, nil},
	{"minSize: 2", "limits", "", `{"nodes":3}`, []string{"advice minSize"}},
	{"minSize: 0", "limits", "", `{"nodes":3}`, nil},
	{"maxInstanceLifetime: 86400", "template.spec.expireAfter", "", `"86400s"`, nil},
	{"taints: {a: \"b:NoSchedule\", c: \":NoExecute\", d: PreferNoSchedule}", "template.spec.taints", "",
		`[{"effect":"NoSchedule","key":"a","value":"b"},{"effect":"NoExecute","key":"c"},{"effect":"PreferNoSchedule","key":"d"}]`, nil},
	{"taints: {a: b}", "template.spec.taints", "", `null`, []string{"impossible g.taints"}},
	{"instanceSelector: {vCPUs: 2, memory: 8GiB}", "template.spec.requirements.3", "",
		`{"key":"node.kubernetes.io/instance-type","operator":"In","values":["m5.large"]}`, []string{"advice g.instanceSelector"}},
	{"instanceSelector: {vCPUs: 4, memory: \"8\"}", "template.spec.requirements.4", "", `null`, []string{"impossible g.instanceSelector"}},
	{"instancesDistribution: {instanceTypes: [m5.large], maxPrice: 0.1, onDemandPercentageAboveBaseCapacity: 0}",
		"template.spec.requirements.2", "", `{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}`,
		[]string{"advice g.instancesDistribution.maxPrice"}},
	{"ami: ami-1", "", "amiSelectorTerms", `[{"id":"ami-1"}]`, []string{"advice g.ami"}},
	{"ami: my-image", "", "amiSelectorTerms", `[{"alias":"al2023@latest"}]`, []string{"impossible g.ami"}},
	{"releaseVersion: 1.30.4-20240917", "", "amiSelectorTerms", `[{"alias":"al2023@v20240917"}]`, nil},
	{"releaseVersion: newest", "", "amiSelectorTerms", `[{"alias":"al2023@latest"}]`, []string{"impossible g.releaseVersion"}},
	{"kubeletExtraConfig: {maxPods: 20, systemReserved: {cpu: 1}, cpuManagerPolicy: static}", "", "kubelet",
		`{"maxPods":20,"systemReserved":{"cpu":"1"}}`, []string{"impossible g.kubeletExtraConfig.cpuManagerPolicy"}},
	{"clusterDNS: 10.0.0.10, maxPodsPerNode: 30", "", "kubelet", `{"maxPods":30,"clusterDNS":["10.0.0.10"]}`, nil},
	{"tags: {a: b, kubernetes.io/cluster/c: owned, k8s.io/cluster-autoscaler/enabled: \"true\"}", "", "tags",
		`{"a":"b"}`, []string{"advice g.tags"}},
	{"labels: {a: b}, tags: {k8s.io/cluster-autoscaler/node-template/label/a: b, k8s.io/cluster-autoscaler/node-template/label/c: d}",
		"", "tags", `null`, []string{"advice g.tags"}},
	{"tags: {k8s.io/cluster-autoscaler/node-template/resources/example.com/fuse: \"5\"}", "", "tags", `null`, []string{"impossible g.tags"}},
	{"labels: {a: {b: c}, d: e}", "template.metadata.labels", "", `{"d":"e"}`, []string{"impossible g.labels[a]"}},
	{"tags: {a: [b], d: e}", "", "tags", `{"d":"e"}`, []string{"impossible g.tags[a]"}},
	{"securityGroups: {attachIDs: [sg-1]}", "", "securityGroupSelectorTerms",
		`[{"tags":{"kubernetes.io/cluster/c":"owned"}},{"id":"sg-1"}]`, nil},
	{"securityGroups: {attachIDs: [sg-1], withShared: false, withLocal: false}", "", "securityGroupSelectorTerms", `[{"id":"sg-1"}]`, nil},
	{"securityGroups: {attachIDs: [sg-1], withLocal: false}", "", "securityGroupSelectorTerms",
		`[{"tags":{"kubernetes.io/cluster/c":"owned"}},{"id":"sg-1"}]`, []string{"impossible g.securityGroups.withLocal"}},
	{"securityGroups: {attachIDs: [sg-1], withShared: false}", "", "securityGroupSelectorTerms",
		`[{"tags":{"kubernetes.io/cluster/c":"owned"}},{"id":"sg-1"}]`, []string{"impossible g.securityGroups.withShared"}},
	{"securityGroups: {withShared: false, withLocal: false}", "", "securityGroupSelectorTerms",
		`[{"tags":{"kubernetes.io/cluster/c":"owned"}}]`,
		[]string{"impossible g.securityGroups.withShared", "impossible g.securityGroups.withLocal"}},
	{"ssh: {allow: false}, efaEnabled: false, outpostARN: \"\"", "weight", "", `null`, nil},
	{"ssh: {allow: true}, efaEnabled: true, surprise: 1", "weight", "", `null`,
		[]string{"impossible g.ssh", "impossible g.efaEnabled", "impossible g.surprise"}},
}

// TestGroupFields verifies that each field becomes part of the pool or the class, or is reported.
func TestGroupFields(t *testing.T) {
	for _, test := range groupFields {
		t.Run(test.fields, func(t *testing.T) {
			result := Run([]File{{Name: "in", Text: []byte(cluster(test.fields))}}, Options{InstanceTypes: knownTypes})
			documents := split(File{Name: "out", Text: result.Manifests})
			which, path := documents[0], test.pool
			if test.class != "" {
				which, path = documents[1], test.class
			}
			if err := which.parse(); err != nil {
				t.Fatal(err)
			}
			node := at(which.root, "spec")
			for _, name := range strings.Split(path, ".") {
				if i, err := strconv.Atoi(name); err == nil && i < len(members(node)) {
					node = members(node)[i]
				} else {
					node = at(node, name)
				}
			}
			got := asJSON(t, node)
			var sortedGot, sortedWant any
			if json.Unmarshal([]byte(got), &sortedGot) != nil || json.Unmarshal([]byte(test.want), &sortedWant) != nil {
				t.Fatalf("%s or %s is no JSON", got, test.want)
			}
			if diff := cmp.Diff(sortedWant, sortedGot); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, notesOf(result)); diff != "" {
				t.Errorf("notes (-want +got):\n%s\n%s", diff, result.Report.Text())
			}
		})
	}
}

// TestImages verifies that a family joins as its images require, and that an image does not get the user data of
// another family without a note.
func TestImages(t *testing.T) {
	for _, test := range []struct {
		fields, family, term, device string
		outcome                      Outcome // of the note about the image; empty: none
	}{
		{"amiFamily: AmazonLinux2023", "", `[{"alias":"al2023@latest"}]`, "/dev/xvda", ""},
		{"amiFamily: AmazonLinux2", "", `[{"alias":"al2@latest"}]`, "/dev/xvda", ""},
		{"amiFamily: Bottlerocket, releaseVersion: 1.20.5-a3e8bda1", "", `[{"alias":"bottlerocket@v1.20.5"}]`, "/dev/xvdb", ""},
		{"amiFamily: Bottlerocket, ami: ami-1", "Bottlerocket", `[{"id":"ami-1"}]`, "/dev/xvdb", Advice},
		{"amiFamily: BottlerocketFips", "", `[{"alias":"bottlerocket@latest"}]`, "/dev/xvdb", Impossible},
		{"amiFamily: Ubuntu2004, ami: ami-1", "AL2", `[{"id":"ami-1"}]`, "/dev/sda1", Advice},
		{"amiFamily: Ubuntu2204", "AL2", `[{"ssmParameter":"/aws/service/canonical/ubuntu/eks/22.04/1.30/stable/current/amd64/hvm/ebs-gp2/ami-id"}]`, "/dev/sda1", Advice},
		{"amiFamily: UbuntuPro2404, instanceType: m6g.large", "AL2",
			`[{"ssmParameter":"/aws/service/canonical/ubuntu/eks-pro/24.04/1.30/stable/current/arm64/hvm/ebs-gp3/ami-id"}]`, "/dev/sda1", Advice},
		{"amiFamily: Flatcar, ami: ami-1", "Custom", `[{"id":"ami-1"}]`, "/dev/xvda", Impossible},
		{"amiFamily: Flatcar", "", `[{"alias":"al2023@latest"}]`, "/dev/xvda", Impossible},
		{"amiFamily: WindowsServer2025FullContainer", "", `[{"alias":"windows2025@latest"}]`, "/dev/sda1", ""},
		{"maxSize: 1", "", `[{"alias":"al2023@latest"}]`, "/dev/xvda", Defaulted},
	} {
		t.Run(test.fields, func(t *testing.T) {
			in := "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, version: \"1.30\"}\nmanagedNodeGroups: [{name: g, iam: {instanceRoleName: r}, " + test.fields + "}]\n"
			result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{})
			class := split(File{Name: "out", Text: result.Manifests})[1]
			if err := class.parse(); err != nil {
				t.Fatal(err)
			}
			spec := at(class.root, "spec")
			if got := text(at(spec, "amiFamily")); got != test.family {
				t.Errorf("the family is %q, want %q", got, test.family)
			}
			if got := asJSON(t, at(spec, "amiSelectorTerms")); got != test.term {
				t.Errorf("the image is %s, want %s", got, test.term)
			}
			if got := text(at(firstOf(at(spec, "blockDeviceMappings")), "deviceName")); got != test.device {
				t.Errorf("the disk is %s, want %s", got, test.device)
			}
			var found Outcome
			for _, note := range result.Report[0].Notes {
				if strings.HasPrefix(note.Field, "g.ami") {
					found = note.Outcome
				}
			}
			if found != test.outcome {
				t.Errorf("the note about the image is %q, want %q:\n%s", found, test.outcome, result.Report.Text())
			}
		})
	}
	in := "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\nnodeGroups: [{name: g, amiFamily: AmazonLinux2}]\n"
	if out := Run([]File{{Name: "in", Text: []byte(in)}}, Options{KubernetesMinor: 33}); !strings.Contains(string(out.Manifests),
		"alias: al2023@latest") {
		t.Errorf("AL2 for Kubernetes 1.33:\n%s", out.Manifests)
	}
}

// TestFieldsOfTheSchema verifies that every field of a node group in eksctl's schema is handled exactly once.
func TestFieldsOfTheSchema(t *testing.T) {
	schema := strings.Fields(`additionalVolumes ami amiFamily asgMetricsCollection asgSuspendProcesses availabilityZones bottlerocket capacityReservation
		classicLoadBalancerNames clusterDNS containerRuntime cpuCredits desiredCapacity disableIMDSv1 disablePodIMDS ebsOptimized efaEnabled enableDetailedMonitoring
		enclaveEnabled iam instanceMarketOptions instanceName instancePrefix instanceSelector instanceType instanceTypes instancesDistribution kubeletExtraConfig labels
		launchTemplate localZones maxInstanceLifetime maxPodsPerNode maxSize minSize name nodeRepairConfig outpostARN overrideBootstrapCommand placement
		preBootstrapCommands privateNetworking propagateASGTags releaseVersion securityGroups spot ssh subnets tags taints targetGroupARNs updateConfig
		volumeEncrypted volumeIOPS volumeKmsKeyID volumeName volumeSize volumeThroughput volumeType`)
	for _, field := range schema {
		places := 0
		if slices.Contains(readFields, field) {
			places++
		}
		if slices.Contains(idleFields, field) {
			places++
		}
		if _, known := otherFields[field]; known {
			places++
		}
		if places != 1 {
			t.Errorf("%s is handled in %d places, want one", field, places)
		}
	}
}

// strangeGroups contains input that cannot be parsed, and the field that is reported.
var strangeGroups = []struct{ config, field string }{
	{"nodeGroups: [{name: g, minSize: \"${MIN}\"}]", "g.minSize"},
	{"nodeGroups: [{name: g, maxSize: [1]}]", "g.maxSize"},
	{"nodeGroups: [{name: g, volumeSize: 100Gi}]", "g.volumeSize"},
	{"nodeGroups: [{name: g, labels: [a, b]}]", "g.labels"},
	{"nodeGroups: [{name: g, iam: role}]", "g.iam"},
	{"nodeGroups: [{name: g, taints: \"a=b:NoSchedule\"}]", "g.taints"},
	{"nodeGroups: [{name: g, spot: sometimes}]", "g.spot"},
	{"nodeGroups: [{name: g, taints: [a]}]", "g.taints"},
	{"nodeGroups: [{name: g, taints: {a: {b: c}}}]", "g.taints"},
	{"nodeGroups: [{name: g, additionalVolumes: [a]}]", "g.additionalVolumes[0]"},
	{"nodeGroups: [{name: g, instanceSelector: {vCPUs: 2.5}}]", "g.instanceSelector.vCPUs"},
	{"nodeGroups: [{name: g, instanceSelector: {vcpus: 2}}]", "g.instanceSelector.vcpus"},
	{"nodeGroups: [{name: g, amiFamily: [Bottlerocket]}]", "g.amiFamily"},
	{"nodeGroups: [{name: g, iam: {roleName: r}}]", "g.iam.roleName"},
	{"nodeGroups: [{name: g, iam: {instanceRoleARN: [a]}}]", "g.iam.instanceRoleARN"},
	{"nodeGroups: [{name: g, instancesDistribution: {onDemandPercentageAboveBaseCapacity: \"${SHARE}\"}}]",
		"g.instancesDistribution.onDemandPercentageAboveBaseCapacity"},
	{"nodeGroups: [{name: g, instancesDistribution: {onDemandBaseCapacity: 1.5}}]", "g.instancesDistribution.onDemandBaseCapacity"},
	{"nodeGroups: [{name: g, instancesDistribution: {onDemandPercentage: 0}}]", "g.instancesDistribution.onDemandPercentage"},
	{"nodeGroups: [{name: g, securityGroups: {attachIds: [sg-1]}}]", "g.securityGroups.attachIds"},
	{"nodeGroups: [{name: g, securityGroups: {withLocal: no-thanks}}]", "g.securityGroups.withLocal"},
	{"nodeGroups: [{name: g, additionalVolumes: [{volumeName: /dev/sdb, volumeSize: 100Gi}]}]", "g.additionalVolumes[0].volumeSize"},
	{"nodeGroups: [{name: g, additionalVolumes: [{volumeName: /dev/sdb}, {volumeName: /dev/sdc, size: 5}]}]", "g.additionalVolumes[1].size"},
	{"nodeGroups: [{name: g, taints: [{key: a, effect: NoSchedule, reason: b}]}]", "g.taints[0].reason"},
}

// TestStrangeGroups verifies that what cannot be parsed is reported, and not guessed.
func TestStrangeGroups(t *testing.T) {
	for _, test := range strangeGroups {
		result := Run([]File{{Name: "in", Text: []byte("apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\n" + test.config + "\n")}}, Options{InstanceTypes: knownTypes})
		if !slices.ContainsFunc(result.Report[0].Notes, func(n Note) bool { return n.Outcome == Impossible && n.Field == test.field }) {
			t.Errorf("%s: nothing impossible about %s:\n%s", test.config, test.field, result.Report.Text())
		}
	}
	for _, config := range []string{"nodeGroups: g", "nodeGroups: [g, 1, null, [a]]", "managedNodeGroups: {a: b}",
		"nodeGroups: [{}]", "vpc: {subnets: [a]}\nnodeGroups: [{name: g, subnets: {a: b}}]"} {
		result := Run([]File{{Name: "in", Text: []byte("apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\n" + config + "\n")}}, Options{})
		switch {
		case len(result.Report) != 1:
			t.Errorf("%s: len(result.Report) is %v, want 1\n%s", config, len(result.Report), result.Report.Text())
		case len(result.Report[0].Notes) == 0:
			t.Errorf("%s: len(result.Report[0].Notes) is 0\n%s", config, result.Report.Text())
		case strings.Contains(string(result.Manifests), "name: \"\""):
			t.Errorf("%s: string(result.Manifests) contains \"name: \\\"\\\"\"\n%s, %s", config, result.Report.Text(), result.Manifests)
		}
	}
	two := cluster("spot: false") + "---\n" + strings.Replace(cluster("spot: false"), "{name: c,", "{name: other,", 1)
	if report := Run([]File{{Name: "in", Text: []byte(two)}}, Options{}).Report.Text(); !strings.Contains(report,
		"differs from the cluster c") {
		t.Errorf("two clusters:\n%s", report)
	}
}

// TestReleaseOfAnotherFamily verifies that a release is only used for the family for which it was written.
func TestReleaseOfAnotherFamily(t *testing.T) {
	for _, test := range []struct {
		family string
		minor  int
		alias  string
		said   bool
	}{
		{"AmazonLinux2", 32, "al2@v20240917", false},
		{"AmazonLinux2", 33, "al2023@latest", true},
		{"AmazonLinux2023", 33, "al2023@v20240917", false},
		{"Flatcar", 32, "al2023@latest", true},
	} {
		in := "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\nmanagedNodeGroups: [{name: g, amiFamily: " + test.family + ", releaseVersion: 1.30.4-20240917}]\n"
		result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{KubernetesMinor: test.minor})
		if !strings.Contains(string(result.Manifests), "alias: "+test.alias+"\n") {
			t.Errorf("%s for 1.%d: no alias %s in\n%s", test.family, test.minor, test.alias, result.Manifests)
		}
		if said := slices.Contains(notesOf(result), "impossible g.releaseVersion"); said != test.said {
			t.Errorf("%s for 1.%d: reported %t, want %t:\n%s", test.family, test.minor, said, test.said, result.Report.Text())
		}
	}
}
