package migrate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// knownTypes are types of EC2 for tests.
func knownTypes() []InstanceType {
	amd, arm := []string{"amd64"}, []string{"arm64"}
	return []InstanceType{
		{"c5.large", amd, 2, 4096, 0, 0}, {"c6i.2xlarge", amd, 8, 16384, 0, 0}, {"c7a.2xlarge", amd, 8, 16384, 0, 0}, {"c7i.2xlarge", amd, 8, 16384, 0, 0},
		{"g5.xlarge", amd, 4, 16384, 1, 0}, {"inf2.xlarge", amd, 4, 16384, 0, 1}, {"m5.2xlarge", amd, 8, 32768, 0, 0}, {"m5.large", amd, 2, 8192, 0, 0}, {"m5.xlarge", amd, 4, 16384, 0, 0},
		{"m5a.2xlarge", amd, 8, 32768, 0, 0}, {"m5n.2xlarge", amd, 8, 32768, 0, 0}, {"m6g.xlarge", arm, 4, 16384, 0, 0}, {"m7a.large", amd, 2, 8192, 0, 0}, {"m7i.large", amd, 2, 8192, 0, 0},
		{"p3.2xlarge", amd, 8, 62464, 1, 0}, {"t4g.large", arm, 2, 8192, 0, 0},
	}
}

// TestGroups migrates whole clusters as people have them. What comes out is compared with testdata/groups/NAME.out.yaml, the
// report with NAME.txt; and what comes out changes no more when it is migrated again.
func TestGroups(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "groups", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, ".out.yaml") })
	if len(paths) < 4 {
		t.Fatalf("%d clusters, want 4 or more", len(paths))
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			options := Options{InstanceTypes: knownTypes}
			result := Run([]File{{Name: name + ".yaml", Text: text}}, options)
			golden(t, filepath.Join("groups", name+".out.yaml"), string(result.Manifests))
			golden(t, filepath.Join("groups", name+".txt"), result.Report.Text())
			again := Run([]File{{Name: "again", Text: result.Manifests}}, options)
			if diff := cmp.Diff(string(result.Manifests), string(again.Manifests)); diff != "" || again.Changed {
				t.Errorf("migrated again it changes (changed %t, -once +twice):\n%s", again.Changed, diff)
			}
		})
	}
}

// cluster is a ClusterConfig with one unmanaged group, whose fields beside the name are given in flow YAML.
func cluster(fields string) string {
	return "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, version: \"1.30\"}\nnodeGroups:\n  - {name: g, instanceType: m5.large, amiFamily: AmazonLinux2023, maxSize: 3, iam: {instanceRoleName: r}, " + fields + "}\n"
}

// podWith is a Deployment whose pods have a spec, in flow YAML.
func podWith(spec string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: n}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}], " + spec + "}\n"
}

// notesOf are the lines of the report about the group g, without the order of moving.
func notesOf(result Result) []string {
	var lines []string
	for _, entry := range result.Report {
		for _, note := range entry.Notes {
			if strings.HasPrefix(note.Field, "g.") || note.Field == "minSize" || note.Field == "maxSize" {
				lines = append(lines, string(note.Outcome)+" "+note.Field)
			}
		}
	}
	return lines
}

// TestGroupLabels: labels are those of the pool where the API allows it, and where it does not, a line says which pods ask for them.
func TestGroupLabels(t *testing.T) {
	for _, test := range []struct {
		name, fields, pod string
		want              string // labels of the pool, as JSON
		notes             []string
		says              string
	}{
		{"one's own", "labels: {team: a, example.com/x: \"1\"}", "", `{"example.com/x":"1","team":"a"}`, nil, ""},
		{"those that pods of GPUs select", "labels: {k8s.amazonaws.com/accelerator: t4}", "", `{"k8s.amazonaws.com/accelerator":"t4"}`, nil, ""},
		{"roles", "labels: {node-role.kubernetes.io/worker: \"\", kubernetes.io/role: worker}", "", `{"kubernetes.io/role":"worker","node-role.kubernetes.io/worker":""}`, nil, ""},
		{"what the pool's nodes are in any case", "labels: {kubernetes.io/arch: amd64, node.kubernetes.io/instance-type: m5.large}", "", `null`, nil, ""},
		{"what they are not", "labels: {kubernetes.io/arch: arm64}", "", `null`, []string{"impossible g.labels[kubernetes.io/arch]"}, "what their machine is"},
		{"of karpenter, that nobody selects", "labels: {karpenter.sh/a: b}", "", `null`, []string{"impossible g.labels[karpenter.sh/a]"}, "no pod of the input asks for it"},
		{"of karpenter, that pods select", "labels: {karpenter.k8s.aws/a: b}", "nodeSelector: {karpenter.k8s.aws/a: b}", `null`, []string{"impossible g.labels[karpenter.k8s.aws/a]"}, "pods that ask for it (Deployment n/d)"},
		{"the group's name, that pods select", "spot: false", "nodeSelector: {alpha.eksctl.io/nodegroup-name: g}", `{"alpha.eksctl.io/nodegroup-name":"g"}`, []string{"advice g.labels[alpha.eksctl.io/nodegroup-name]"}, "pods ask for it (Deployment n/d)"},
		{"another group's name, that pods select", "spot: false", "nodeSelector: {alpha.eksctl.io/nodegroup-name: h}", `null`, nil, ""},
		{"pods that keep off", "spot: true", "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node-lifecycle, operator: NotIn, values: [spot]}]}]}}}", `{"node-lifecycle":"spot"}`, []string{"advice g.labels[node-lifecycle]"}, ""},
		{"pods that would rather", "spot: false", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: node-lifecycle, operator: Exists}]}}]}}", `{"node-lifecycle":"on-demand"}`, []string{"advice g.labels[node-lifecycle]"}, ""},
		{"pods that spread over groups", "spot: false", "topologySpreadConstraints: [{topologyKey: alpha.eksctl.io/nodegroup-name, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]", `{"alpha.eksctl.io/nodegroup-name":"g"}`, []string{"advice g.labels[alpha.eksctl.io/nodegroup-name]"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := cluster(test.fields)
			if test.pod != "" {
				in += podWith(test.pod)
			}
			d, result := run(t, in)
			if text(at(d.root, "kind")) != "NodePool" {
				t.Fatalf("the first object is\n%s", result.Manifests)
			}
			if diff := cmp.Diff(test.want, asJSON(t, at(d.root, "spec", "template", "metadata", "labels"))); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, notesOf(result)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if report := result.Report.Text(); !strings.Contains(report, test.says) {
				t.Errorf("the report is\n%s, want %q in it", report, test.says)
			}
		})
	}
}

func asJSON(t *testing.T, node *yaml.Node) string {
	t.Helper()
	text, err := json.Marshal(plain(node))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGroupFields: each field becomes part of the pool or the class, or has a line.
func TestGroupFields(t *testing.T) {
	for _, test := range []struct {
		fields, pool, class string // what to look at, and what is there as JSON
		want                string
		notes               []string
	}{
		{"spot: false", "", "blockDeviceMappings", `[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"80Gi","volumeType":"gp3"}}]`, nil},
		{"volumeSize: 10, volumeType: gp2", "", "blockDeviceMappings", `[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"10Gi","volumeType":"gp2"}}]`, nil},
		{"volumeName: /dev/sda1", "", "blockDeviceMappings", `[{"deviceName":"/dev/sda1","ebs":{"volumeSize":"80Gi","volumeType":"gp3"},"rootVolume":true}]`, nil},
		{"additionalVolumes: [{volumeName: /dev/sdb, snapshotID: snap-1}]", "", "blockDeviceMappings", `[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"80Gi","volumeType":"gp3"}},{"deviceName":"/dev/sdb","ebs":{"snapshotID":"snap-1","volumeType":"gp3"}}]`, nil},
		{"spot: false", "", "metadataOptions", `{"httpPutResponseHopLimit":2,"httpTokens":"required"}`, nil},
		{"disableIMDSv1: false", "", "metadataOptions", `{"httpPutResponseHopLimit":2,"httpTokens":"optional"}`, nil},
		{"disablePodIMDS: true, disableIMDSv1: false", "", "metadataOptions", `{"httpPutResponseHopLimit":1,"httpTokens":"required"}`, nil},
		{"minSize: 2", "limits", "", `{"nodes":3}`, []string{"advice minSize"}},
		{"minSize: 0", "limits", "", `{"nodes":3}`, nil},
		{"maxInstanceLifetime: 86400", "template.spec.expireAfter", "", `"86400s"`, nil},
		{"taints: {a: \"b:NoSchedule\", c: \":NoExecute\", d: PreferNoSchedule}", "template.spec.taints", "", `[{"effect":"NoSchedule","key":"a","value":"b"},{"effect":"NoExecute","key":"c"},{"effect":"PreferNoSchedule","key":"d"}]`, nil},
		{"taints: {a: b}", "template.spec.taints", "", `null`, []string{"impossible g.taints"}},
		{"instanceSelector: {vCPUs: 2, memory: 8GiB}", "template.spec.requirements.3", "", `{"key":"node.kubernetes.io/instance-type","operator":"In","values":["m5.large"]}`, []string{"advice g.instanceSelector"}},
		{"instanceSelector: {vCPUs: 4, memory: \"8\"}", "template.spec.requirements.4", "", `null`, []string{"impossible g.instanceSelector"}},
		{"instancesDistribution: {instanceTypes: [m5.large], maxPrice: 0.1, onDemandPercentageAboveBaseCapacity: 0}", "template.spec.requirements.2", "", `{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}`, []string{"advice g.instancesDistribution.maxPrice"}},
		{"ami: ami-1", "", "amiSelectorTerms", `[{"id":"ami-1"}]`, []string{"advice g.ami"}},
		{"ami: my-image", "", "amiSelectorTerms", `[{"alias":"al2023@latest"}]`, []string{"impossible g.ami"}},
		{"releaseVersion: 1.30.4-20240917", "", "amiSelectorTerms", `[{"alias":"al2023@v20240917"}]`, nil},
		{"releaseVersion: newest", "", "amiSelectorTerms", `[{"alias":"al2023@latest"}]`, []string{"impossible g.releaseVersion"}},
		{"kubeletExtraConfig: {maxPods: 20, systemReserved: {cpu: 1}, cpuManagerPolicy: static}", "", "kubelet", `{"maxPods":20,"systemReserved":{"cpu":"1"}}`, []string{"impossible g.kubeletExtraConfig.cpuManagerPolicy"}},
		{"clusterDNS: 10.0.0.10, maxPodsPerNode: 30", "", "kubelet", `{"maxPods":30,"clusterDNS":["10.0.0.10"]}`, nil},
		{"tags: {a: b, kubernetes.io/cluster/c: owned, k8s.io/cluster-autoscaler/enabled: \"true\"}", "", "tags", `{"a":"b"}`, []string{"advice g.tags"}},
		{"labels: {a: b}, tags: {k8s.io/cluster-autoscaler/node-template/label/a: b, k8s.io/cluster-autoscaler/node-template/label/c: d}", "", "tags", `null`, []string{"advice g.tags"}},
		{"tags: {k8s.io/cluster-autoscaler/node-template/resources/example.com/fuse: \"5\"}", "", "tags", `null`, []string{"impossible g.tags"}},
		{"ssh: {allow: false}, efaEnabled: false, outpostARN: \"\"", "weight", "", `null`, nil},
		{"ssh: {allow: true}, efaEnabled: true, surprise: 1", "weight", "", `null`, []string{"impossible g.ssh", "impossible g.efaEnabled", "impossible g.surprise"}},
	} {
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

// TestImages: a family is told to join as its images can, and an image is never given the user data of another family
// without a word.
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
		{"amiFamily: UbuntuPro2404, instanceType: m6g.large", "AL2", `[{"ssmParameter":"/aws/service/canonical/ubuntu/eks-pro/24.04/1.30/stable/current/arm64/hvm/ebs-gp3/ami-id"}]`, "/dev/sda1", Advice},
		{"amiFamily: Flatcar, ami: ami-1", "Custom", `[{"id":"ami-1"}]`, "/dev/xvda", Impossible},
		{"amiFamily: Flatcar", "", `[{"alias":"al2023@latest"}]`, "/dev/xvda", Impossible},
		{"amiFamily: WindowsServer2025FullContainer", "", `[{"alias":"windows2025@latest"}]`, "/dev/sda1", Impossible},
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
	if out := Run([]File{{Name: "in", Text: []byte(in)}}, Options{KubernetesMinor: 33}); !strings.Contains(string(out.Manifests), "alias: al2023@latest") {
		t.Errorf("AL2 for Kubernetes 1.33:\n%s", out.Manifests)
	}
}

// TestFieldsOfTheSchema: every field of a node group that eksctl's schema has is known here, and none twice.
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
		if _, told := otherFields[field]; told {
			places++
		}
		if places != 1 {
			t.Errorf("%s is known in %d places, want one", field, places)
		}
	}
}

// TestHome: the controller starts on nodes that it did not buy, that are not taken away, and that it may run on.
func TestHome(t *testing.T) {
	group := func(name, capacity string, least int, taints int) *nodeGroup {
		return &nodeGroup{name: name, capacityTypes: []string{capacity}, least: least, taints: make([]*yaml.Node, taints), os: "linux"}
	}
	windows := group("windows", "on-demand", 9, 0)
	windows.os = "windows"
	for _, test := range []struct {
		want   string
		groups []*nodeGroup
	}{
		{"a", []*nodeGroup{group("a", "on-demand", 1, 0), group("spot", "spot", 5, 0), group("tainted", "on-demand", 7, 1), windows}},
		{"large", []*nodeGroup{group("a", "on-demand", 1, 0), group("large", "on-demand", 2, 0)}},
		{"spot", []*nodeGroup{group("spot", "spot", 5, 0), windows}},
		{"", []*nodeGroup{windows, group("tainted", "on-demand", 7, 1)}},
	} {
		got := ""
		if home := homeOf(test.groups); home != nil {
			got = home.name
		}
		if got != test.want {
			t.Errorf("it is %q, want %q", got, test.want)
		}
	}
}

// TestLabelsOfNodes: labels that the nodes of a known group have beside what the file says are those of its pool if pods ask
// for them and all nodes have them; else a line says what is lost.
func TestLabelsOfNodes(t *testing.T) {
	node := func(name, labels string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {alpha.eksctl.io/nodegroup-name: g, " + labels + "}}\nspec: {}\n"
	}
	nodes := node("1", "all: a, some: b, karpenter.sh/x: z") + node("2", "all: a, karpenter.sh/x: z")
	for _, test := range []struct {
		pod, want string
		notes     []string
	}{
		{"", `null`, []string{"advice g.labels[all]", "advice g.labels[some]"}},
		{"nodeSelector: {all: a}", `{"all":"a"}`, []string{"advice g.labels[all]", "advice g.labels[some]"}},
		{"nodeSelector: {some: b}", `null`, []string{"advice g.labels[all]", "impossible g.labels[some]"}},
		{"nodeSelector: {some: other, all: other}", `null`, []string{"advice g.labels[all]", "advice g.labels[some]"}},
		{"nodeSelector: {karpenter.sh/x: z}", `null`, []string{"advice g.labels[all]", "impossible g.labels[karpenter.sh/x]", "advice g.labels[some]"}},
	} {
		in := cluster("spot: false") + nodes
		if test.pod != "" {
			in += podWith(test.pod)
		}
		d, result := run(t, in)
		if diff := cmp.Diff(test.want, asJSON(t, at(d.root, "spec", "template", "metadata", "labels"))); diff != "" {
			t.Errorf("%s: labels (-want +got):\n%s", test.pod, diff)
		}
		if diff := cmp.Diff(test.notes, notesOf(result)); diff != "" {
			t.Errorf("%s: notes (-want +got):\n%s", test.pod, diff)
		}
	}
}

// TestStrangeGroups: what cannot be read has a line, and is not guessed.
func TestStrangeGroups(t *testing.T) {
	for _, test := range []struct{ config, field string }{
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
	} {
		result := Run([]File{{Name: "in", Text: []byte("apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\n" + test.config + "\n")}}, Options{InstanceTypes: knownTypes})
		if !slices.ContainsFunc(result.Report[0].Notes, func(n Note) bool { return n.Outcome == Impossible && n.Field == test.field }) {
			t.Errorf("%s: nothing impossible of %s:\n%s", test.config, test.field, result.Report.Text())
		}
	}
	for _, config := range []string{"nodeGroups: g", "nodeGroups: [g, 1, null, [a]]", "managedNodeGroups: {a: b}", "nodeGroups: [{}]", "vpc: {subnets: [a]}\nnodeGroups: [{name: g, subnets: {a: b}}]"} {
		result := Run([]File{{Name: "in", Text: []byte("apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\n" + config + "\n")}}, Options{})
		if len(result.Report) != 1 || len(result.Report[0].Notes) == 0 || strings.Contains(string(result.Manifests), "name: \"\"") {
			t.Errorf("%s:\n%s%s", config, result.Report.Text(), result.Manifests)
		}
	}
	two := cluster("spot: false") + "---\n" + strings.Replace(cluster("spot: false"), "{name: c,", "{name: other,", 1)
	if report := Run([]File{{Name: "in", Text: []byte(two)}}, Options{}).Report.Text(); !strings.Contains(report, "is another cluster than c") {
		t.Errorf("two clusters:\n%s", report)
	}
}

// TestNodesOfNobody: no pool is proposed for the control plane and for Fargate, and a taint that goes by itself is none of the
// pool's.
func TestNodesOfNobody(t *testing.T) {
	node := func(name, labels, taint string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {kops.k8s.io/instancegroup: " + name + ", kubernetes.io/os: linux, node.kubernetes.io/instance-type: m5.large, " + labels + "}}\nspec: {taints: [{key: " + taint + ", effect: NoSchedule}]}\n"
	}
	in := scaler(`[cluster-autoscaler]`, `["--startup-taint=agent-not-ready", "--status-taint=flaky"]`) +
		node("master", `node-role.kubernetes.io/control-plane: ""`, "node-role.kubernetes.io/control-plane") + node("fargate", "eks.amazonaws.com/compute-type: fargate", "eks.amazonaws.com/compute-type") +
		node("a", "x: y", "agent-not-ready") + node("b", "x: y", "flaky") + node("c", "x: y", "mine")
	result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{})
	if diff := cmp.Diff([]string{"NodePool a", "NodePool b", "NodePool c"}, result.Report[0].Became); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	taints := map[string]string{}
	for _, d := range split(File{Name: "out", Text: result.Manifests}) {
		if err := d.parse(); err != nil {
			t.Fatal(err)
		}
		if text(at(d.root, "kind")) == "NodePool" {
			spec := at(d.root, "spec", "template", "spec")
			taints[text(at(d.root, "metadata", "name"))] = asJSON(t, at(spec, "taints"))
			if startup := text(at(firstOf(at(spec, "startupTaints")), "key")); startup != "agent-not-ready" {
				t.Errorf("the startup taint is %q", startup)
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "null", "b": "null", "c": `[{"effect":"NoSchedule","key":"mine"}]`}, taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

// TestSharedClasses: groups whose machines are made alike have one class, that of the first, unless something has to be
// written into it by hand.
func TestSharedClasses(t *testing.T) {
	in := "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c}\nmanagedNodeGroups:\n" +
		"  - {name: a, iam: {instanceRoleName: r}}\n  - {name: b, iam: {instanceRoleName: r}, spot: true}\n  - {name: c, iam: {instanceRoleName: r}, volumeSize: 100}\n  - {name: d, iam: {instanceRoleName: r}, volumeSize: 100}\n" +
		"  - {name: e, iam: {instanceRoleName: r}, preBootstrapCommands: [x]}\n"
	result := Run([]File{{Name: "in", Text: []byte(in)}}, Options{})
	want := []string{"NodePool a", "EC2NodeClass a", "NodePool b", "NodePool c", "EC2NodeClass c", "NodePool d", "NodePool e", "EC2NodeClass e"}
	if diff := cmp.Diff(want, result.Report[0].Became); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var classes []string
	for _, d := range split(File{Name: "out", Text: result.Manifests}) {
		if err := d.parse(); err != nil {
			t.Fatal(err)
		}
		if text(at(d.root, "kind")) == "NodePool" {
			classes = append(classes, text(at(d.root, "spec", "template", "spec", "nodeClassRef", "name")))
		}
	}
	if diff := cmp.Diff([]string{"a", "a", "c", "c", "e"}, classes); diff != "" {
		t.Errorf("classes of the pools (-want +got):\n%s", diff)
	}
}
