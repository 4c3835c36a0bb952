package crds_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
)

const goodEC2Class = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: good}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {cluster: c}}]
  securityGroupSelectorTerms: [{tags: {cluster: c}}]
`

func ec2(spec string) string { return "spec: {" + spec + "}" }

// manyTags returns a map of n tags.
func manyTags(n int) string {
	var tags []string
	for i := range n {
		tags = append(tags, fmt.Sprintf("t%d: v", i))
	}
	return "{" + strings.Join(tags, ", ") + "}"
}

var ec2SelectorRules = []schemaRule{
	{"spec is required", `{}`, `spec: null`, "spec: Required"},

	{"subnets are required", ec2(``), ec2(`subnetSelectorTerms: null`), "subnetSelectorTerms: Required"},
	{"subnets: a term is needed", ec2(`subnetSelectorTerms: [{id: subnet-1}]`), ec2(`subnetSelectorTerms: []`), "at least one term"},
	{"subnets: at most 30 terms", ec2(`subnetSelectorTerms: ` + repeat(`{id: subnet-1}`, 30)), ec2(`subnetSelectorTerms: ` + repeat(`{id: subnet-1}`, 31)), "Too many"},
	{"subnets: a term is not empty", ec2(`subnetSelectorTerms: [{tags: {a: b}}]`), ec2(`subnetSelectorTerms: [{tags: {a: b}}, {}]`), "one of tags, id"},
	{"subnets: empty tags are none", ec2(`subnetSelectorTerms: [{tags: {a: "*"}}]`), ec2(`subnetSelectorTerms: [{tags: {}}]`), "one of tags, id"},
	{"subnets: an id stands alone in every term", ec2(`subnetSelectorTerms: [{id: subnet-1}, {tags: {a: b}}]`), ec2(`subnetSelectorTerms: [{id: subnet-1, tags: {a: b}}, {tags: {a: b}}]`), "nothing else"},
	{"subnets: ids", ec2(`subnetSelectorTerms: [{id: subnet-0a9}]`), ec2(`subnetSelectorTerms: [{id: sg-0a9}]`), "id"},
	{"subnets: whole ids", ec2(`subnetSelectorTerms: [{id: subnet-0a9}]`), ec2(`subnetSelectorTerms: [{id: my-subnet-0a9}]`), "id"},
	{"subnets: at most 20 tags", ec2(`subnetSelectorTerms: [{tags: ` + manyTags(20) + `}]`), ec2(`subnetSelectorTerms: [{tags: ` + manyTags(21) + `}]`), "Too many"},
	{"subnets: no empty tag", ec2(`subnetSelectorTerms: [{tags: {a: b}}]`), ec2(`subnetSelectorTerms: [{tags: {"": b}}]`), "must not be empty"},
	{"subnets: no empty value", ec2(`subnetSelectorTerms: [{tags: {a: b}}]`), ec2(`subnetSelectorTerms: [{tags: {a: ""}}]`), "must not be empty"},

	{"groups are required", ec2(``), ec2(`securityGroupSelectorTerms: null`), "securityGroupSelectorTerms: Required"},
	{"groups: a term is needed", ec2(`securityGroupSelectorTerms: [{id: sg-1}]`), ec2(`securityGroupSelectorTerms: []`), "at least one term"},
	{"groups: at most 30 terms", ec2(`securityGroupSelectorTerms: ` + repeat(`{name: a}`, 30)), ec2(`securityGroupSelectorTerms: ` + repeat(`{name: a}`, 31)), "Too many"},
	{"groups: a term is not empty", ec2(`securityGroupSelectorTerms: [{name: a}]`), ec2(`securityGroupSelectorTerms: [{name: ""}]`), "one of tags, id, name"},
	{"groups: an id stands alone", ec2(`securityGroupSelectorTerms: [{id: sg-1}, {name: a}]`), ec2(`securityGroupSelectorTerms: [{id: sg-1, name: a}, {name: a}]`), "with id"},
	{"groups: a name stands alone", ec2(`securityGroupSelectorTerms: [{name: a}, {tags: {a: b}}]`), ec2(`securityGroupSelectorTerms: [{name: a, tags: {a: b}}, {name: a}]`), "with name"},
	{"groups: ids", ec2(`securityGroupSelectorTerms: [{id: sg-0a9}]`), ec2(`securityGroupSelectorTerms: [{id: SG-0a9}]`), "id"},
	{"groups: no empty value", ec2(`securityGroupSelectorTerms: [{tags: {a: b}}]`), ec2(`securityGroupSelectorTerms: [{tags: {a: ""}}]`), "must not be empty"},

	{"reservations: at most 30 terms", ec2(`capacityReservationSelectorTerms: ` + repeat(`{id: cr-1}`, 30)), ec2(`capacityReservationSelectorTerms: ` + repeat(`{id: cr-1}`, 31)), "Too many"},
	{"reservations: an owner is not enough", ec2(`capacityReservationSelectorTerms: [{tags: {a: b}, ownerID: "012345678901"}]`), ec2(`capacityReservationSelectorTerms: [{ownerID: "012345678901"}]`), "one of tags, id, instanceMatchCriteria"},
	{"reservations: an id stands alone", ec2(`capacityReservationSelectorTerms: [{id: cr-1}, {instanceMatchCriteria: open}]`), ec2(`capacityReservationSelectorTerms: [{id: cr-1, instanceMatchCriteria: open}, {id: cr-2}]`), "nothing else"},
	{"reservations: ids", ec2(`capacityReservationSelectorTerms: [{id: cr-0a}]`), ec2(`capacityReservationSelectorTerms: [{id: xcr-0a}]`), "id"},
	{"reservations: owners", ec2(`capacityReservationSelectorTerms: [{tags: {a: b}, ownerID: "012345678901"}]`), ec2(`capacityReservationSelectorTerms: [{tags: {a: b}, ownerID: me}]`), "ownerID"},
	{"reservations: criteria", ec2(`capacityReservationSelectorTerms: [{instanceMatchCriteria: targeted}]`), ec2(`capacityReservationSelectorTerms: [{instanceMatchCriteria: any}]`), "Unsupported value"},

	{"placement group: name or id", ec2(`placementGroupSelector: {name: a}`), ec2(`placementGroupSelector: {}`), "exactly one of name and id"},
	{"placement group: not both", ec2(`placementGroupSelector: {id: pg-1}`), ec2(`placementGroupSelector: {name: a, id: pg-1}`), "exactly one of name and id"},
	{"placement group: name", ec2(`placementGroupSelector: {name: a}`), ec2(`placementGroupSelector: {name: ""}`), "name"},
	{"placement group: id", ec2(`placementGroupSelector: {id: pg-1}`), ec2(`placementGroupSelector: {id: pg1}`), "id"},
}

// ami returns a class of another family whose images are selected by the terms.
func ami(terms string) string { return ec2(`amiFamily: AL2, amiSelectorTerms: [` + terms + `]`) }

var ec2ImageRules = []schemaRule{
	{"images are required", ec2(``), ec2(`amiSelectorTerms: null`), "amiSelectorTerms: Required"},
	{"a term is needed", ami(`{id: ami-1}`), ami(``), "at least one term"},
	{"at most 30 terms", ami(strings.Trim(repeat(`{id: ami-1}`, 30), "[]")), ami(strings.Trim(repeat(`{id: ami-1}`, 31), "[]")), "Too many"},
	{"a term is not empty", ami(`{name: a}`), ami(`{owner: self}`), "one of tags, id, name, alias, ssmParameter"},
	{"a parameter is enough", ami(`{ssmParameter: /a/b}`), ami(`{ssmParameter: ""}`), "one of tags, id, name, alias, ssmParameter"},
	{"an id stands alone", ami(`{id: ami-1}, {name: a, owner: self}`), ami(`{id: ami-1, owner: self}, {name: a}`), "with id"},
	{"an id excludes a parameter", ami(`{id: ami-1}, {ssmParameter: /a}`), ami(`{id: ami-1, ssmParameter: /a}`), "with id"},
	{"an alias stands alone", ami(`{alias: al2@latest}`), ami(`{alias: al2@latest, name: a}`), "with alias"},
	{"an alias excludes a parameter", ami(`{alias: al2@latest}`), ami(`{alias: al2@latest, ssmParameter: /a}`), "with alias"},
	{"an alias is the only term", ami(`{alias: al2@latest}`), ami(`{alias: al2@latest}, {id: ami-1}`), "only term"},
	{"ids", ami(`{id: ami-0a}`), ami(`{id: ami_0a}`), "id"},
	{"no empty value", ami(`{tags: {a: b}}`), ami(`{tags: {a: ""}}`), "must not be empty"},
	{"an alias has a version", ami(`{alias: al2@latest}`), ami(`{alias: al2}`), "family@version"},
	{"an alias has a known family", ami(`{alias: al2@v20240807}`), ami(`{alias: ubuntu@latest}`), "the family of alias"},
	{"the family of an alias is in lower case", ami(`{alias: al2@latest}`), ami(`{alias: AL2@latest}`), "the family of alias"},
	{"an alias is at most 30 bytes long", ami(`{alias: al2@` + strings.Repeat("v", 26) + `}`), ami(`{alias: al2@` + strings.Repeat("v", 27) + `}`), "Too long"},
	{"aliases of Windows are the latest", ec2(`amiSelectorTerms: [{alias: windows2025@latest}]`), ec2(`amiSelectorTerms: [{alias: windows2025@v1}]`), "must be latest"},
	{"without an alias there is a family", ec2(`amiFamily: AL2023, amiSelectorTerms: [{id: ami-1}]`), ec2(`amiSelectorTerms: [{id: ami-1}]`), "amiFamily must be set"},
	{"the family is that of the alias", ec2(`amiFamily: AL2023`), ec2(`amiFamily: AL2`), "family of the alias"},
	{"the family is Custom", ec2(`amiFamily: Custom`), ec2(`amiFamily: Bottlerocket`), "family of the alias"},
	{"families", ec2(`amiFamily: Windows2022, amiSelectorTerms: [{alias: windows2022@latest}]`), ec2(`amiFamily: Ubuntu`), "Unsupported value"},
}

// disk returns a class with one disk.
func disk(volume string) string { return ec2(`blockDeviceMappings: [{ebs: {` + volume + `}}]`) }

var ec2MachineRules = []schemaRule{
	{"a role or a profile", ec2(`role: null, instanceProfile: p`), ec2(`role: null`), "exactly one of role and instanceProfile"},
	{"not both", ec2(``), ec2(`instanceProfile: p`), "exactly one of role and instanceProfile"},
	{"role is not empty", ec2(``), ec2(`role: ""`), "role must not be empty"},
	{"profile is not empty", ec2(`role: null, instanceProfile: p`), ec2(`role: null, instanceProfile: ""`), "instanceProfile must not be empty"},
	{"tags have keys", ec2(`tags: {a: ""}`), ec2(`tags: {"": a}`), "keys must not be empty"},
	{"tag of the cluster", ec2(`tags: {eks: a}`), ec2(`tags: {"eks:eks-cluster-name": a}`), "set by karpenter"},
	{"tags of clusters", ec2(`tags: {a/kubernetes.io/cluster/b: a}`), ec2(`tags: {kubernetes.io/cluster/b: owned}`), "set by karpenter"},
	{"tag of the pool", ec2(`tags: {karpenter.sh/pool: a}`), ec2(`tags: {karpenter.sh/nodepool: a}`), "set by karpenter"},
	{"tag of the claim", ec2(`tags: {Name: a}`), ec2(`tags: {karpenter.sh/nodeclaim: a}`), "set by karpenter"},
	{"tag of the class", ec2(`tags: {a: b}`), ec2(`tags: {karpenter.k8s.aws/ec2nodeclass: a}`), "set by karpenter"},

	{"at most 50 disks", ec2(`blockDeviceMappings: ` + repeat(`{deviceName: a}`, 50)), ec2(`blockDeviceMappings: ` + repeat(`{deviceName: a}`, 51)), "Too many"},
	{"one root volume", ec2(`blockDeviceMappings: [{rootVolume: true}, {rootVolume: false}, {}]`), ec2(`blockDeviceMappings: [{rootVolume: true}, {rootVolume: true}]`), "rootVolume"},
	{"a disk has a size or a snapshot", disk(`snapshotID: s`), disk(`encrypted: true`), "snapshotID and volumeSize"},
	{"initialization needs a snapshot", disk(`snapshotID: s, volumeInitializationRate: 100`), disk(`volumeSize: 1Gi, volumeInitializationRate: 100`), "needs a snapshotID"},
	{"initialization is fast enough", disk(`snapshotID: s, volumeInitializationRate: 300`), disk(`snapshotID: s, volumeInitializationRate: 99`), "volumeInitializationRate"},
	{"initialization is not too fast", disk(`snapshotID: s, volumeInitializationRate: 300`), disk(`snapshotID: s, volumeInitializationRate: 301`), "volumeInitializationRate"},
	{"volume types", disk(`volumeSize: 1Gi, volumeType: io2`), disk(`volumeSize: 1Gi, volumeType: gp4`), "Unsupported value"},
	{"instance store", ec2(`instanceStorePolicy: RAID0`), ec2(`instanceStorePolicy: RAID1`), "Unsupported value"},

	{"at most 150 interfaces", interfaces(150), interfaces(151), "Too many"},
	{"the first interface", ec2(`networkInterfaces: []`), ec2(`networkInterfaces: [{networkCardIndex: 1, deviceIndex: 0, interfaceType: interface}]`), "networkCardIndex 0 and deviceIndex 0"},
	{"the first interface carries traffic", interfaces(1), ec2(`networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: efa-only}]`), "of type interface"},
	{"interfaces differ", interfaces(2), interfaces(1, `{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}`), "the same networkCardIndex and deviceIndex"},
	{"one EFA per card", interfaces(1, `{networkCardIndex: 0, deviceIndex: 1, interfaceType: efa-only}`, `{networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}`), interfaces(1, `{networkCardIndex: 0, deviceIndex: 1, interfaceType: efa-only}`, `{networkCardIndex: 0, deviceIndex: 2, interfaceType: efa-only}`), "efa-only"},
	{"interface types", interfaces(1), interfaces(1, `{networkCardIndex: 0, deviceIndex: 1, interfaceType: efa}`), "Unsupported value"},
	{"interfaces have a type", interfaces(1), interfaces(1, `{networkCardIndex: 0, deviceIndex: 1}`), "interfaceType: Required"},
	{"interfaces count from 0", interfaces(1), interfaces(1, `{networkCardIndex: -1, deviceIndex: 1, interfaceType: interface}`), "networkCardIndex"},

	{"metadata endpoint", ec2(`metadataOptions: {httpEndpoint: disabled}`), ec2(`metadataOptions: {httpEndpoint: "off"}`), "Unsupported value"},
	{"metadata by IPv6", ec2(`metadataOptions: {httpProtocolIPv6: enabled}`), ec2(`metadataOptions: {httpProtocolIPv6: "on"}`), "Unsupported value"},
	{"metadata tokens", ec2(`metadataOptions: {httpTokens: optional}`), ec2(`metadataOptions: {httpTokens: none}`), "Unsupported value"},
	{"metadata hops", ec2(`metadataOptions: {httpPutResponseHopLimit: 64}`), ec2(`metadataOptions: {httpPutResponseHopLimit: 65}`), "httpPutResponseHopLimit"},
	{"at least one metadata hop", ec2(`metadataOptions: {httpPutResponseHopLimit: 1}`), ec2(`metadataOptions: {httpPutResponseHopLimit: 0}`), "httpPutResponseHopLimit"},

	{"a timeout is set", ec2(`connectionTracking: {udpTimeout: 30}`), ec2(`connectionTracking: {}`), "at least one of"},
	{"timeout of TCP", ec2(`connectionTracking: {tcpEstablishedTimeout: 432000}`), ec2(`connectionTracking: {tcpEstablishedTimeout: 432001}`), "tcpEstablishedTimeout"},
	{"timeout of UDP streams", ec2(`connectionTracking: {udpStreamTimeout: 60}`), ec2(`connectionTracking: {udpStreamTimeout: 59}`), "udpStreamTimeout"},
	{"timeout of UDP", ec2(`connectionTracking: {udpTimeout: 60}`), ec2(`connectionTracking: {udpTimeout: 61}`), "udpTimeout"},
	{"nested virtualization", ec2(`cpuOptions: {nestedVirtualization: enabled}`), ec2(`cpuOptions: {nestedVirtualization: "yes"}`), "Unsupported value"},
	{"prefixes", ec2(`ipPrefixCount: 0`), ec2(`ipPrefixCount: -1`), "ipPrefixCount"},
}

// interfaces returns a class with n network interfaces on card 0, and more.
func interfaces(n int, more ...string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{networkCardIndex: 0, deviceIndex: %d, interfaceType: interface}", i))
	}
	return ec2("networkInterfaces: [" + strings.Join(append(all, more...), ", ") + "]")
}

func kubelet(fields string) string { return ec2("kubelet: {" + fields + "}") }

var ec2KubeletRules = []schemaRule{
	{"maxPods is not negative", kubelet(`maxPods: 0`), kubelet(`maxPods: -1`), "maxPods must be zero or greater"},
	{"maxPods may be an expression", kubelet(`maxPods: "default_enis * 8"`), kubelet(`maxPods: [1]`), "maxPods"},
	{"podsPerCore is not negative", kubelet(`podsPerCore: 0`), kubelet(`podsPerCore: -1`), "podsPerCore"},
	{"systemReserved has known keys", kubelet(`systemReserved: {cpu: "1", memory: 1Gi, ephemeral-storage: 1Gi, pid: "100"}`), kubelet(`systemReserved: {disk: 1Gi}`), "keys of systemReserved"},
	{"systemReserved is not negative", kubelet(`systemReserved: {cpu: 100m}`), kubelet(`systemReserved: {cpu: -100m}`), "must not be negative"},
	{"kubeReserved has known keys", kubelet(`kubeReserved: {cpu: 100m}`), kubelet(`kubeReserved: {pods: "5"}`), "keys of kubeReserved"},
	{"kubeReserved is not negative", kubelet(`kubeReserved: {memory: 1Gi}`), kubelet(`kubeReserved: {memory: -1Gi}`), "must not be negative"},
	{"evictionHard has known keys", kubelet(`evictionHard: {memory.available: 5%}`), kubelet(`evictionHard: {memory: 5%}`), "keys of evictionHard"},
	{"evictionSoft has known keys", kubelet(`evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {memory.available: 1m}`), kubelet(`evictionSoft: {memory: 5%}, evictionSoftGracePeriod: {memory: 1m}`), "keys of evictionSoft"},
	{"evictionSoft has a time", kubelet(`evictionSoft: {pid.available: 5%}, evictionSoftGracePeriod: {pid.available: 1m}`), kubelet(`evictionSoft: {pid.available: 5%}`), "evictionSoftGracePeriod"},
	{"a time has an evictionSoft", kubelet(`evictionSoft: {pid.available: 5%}, evictionSoftGracePeriod: {pid.available: 1m}`), kubelet(`evictionSoftGracePeriod: {pid.available: 1m}`), "evictionSoft"},
	{"times are durations", kubelet(`evictionSoft: {pid.available: 5%}, evictionSoftGracePeriod: {pid.available: 1h2m3s}`), kubelet(`evictionSoft: {pid.available: 5%}, evictionSoftGracePeriod: {pid.available: soon}`), "evictionSoftGracePeriod"},
	{"times are not negative", kubelet(`evictionSoft: {pid.available: 5%}, evictionSoftGracePeriod: {pid.available: 0s}`), kubelet(`evictionSoft: {pid.available: 5%}, evictionSoftGracePeriod: {pid.available: -1s}`), "must be durations"},
	{"images: percentages", kubelet(`imageGCHighThresholdPercent: 100, imageGCLowThresholdPercent: 0`), kubelet(`imageGCHighThresholdPercent: 101`), "imageGCHighThresholdPercent"},
	{"images: high is above low", kubelet(`imageGCHighThresholdPercent: 60, imageGCLowThresholdPercent: 59`), kubelet(`imageGCHighThresholdPercent: 60, imageGCLowThresholdPercent: 60`), "must be greater"},
	{"types", kubelet(`cpuCFSQuota: false`), kubelet(`cpuCFSQuota: "false"`), "cpuCFSQuota"},
}

func testEC2NodeClassSchema(t *testing.T, s *server) {
	for group, rules := range map[string][]schemaRule{"selectors": ec2SelectorRules, "images": ec2ImageRules, "machines": ec2MachineRules, "kubelet": ec2KubeletRules, "sizes": sizeRules()} {
		for _, r := range rules {
			t.Run(group+": "+r.name, func(t *testing.T) { r.check(t, s, goodEC2Class) })
		}
	}
}

// sizeRules contains the limits of each unit. It includes 18Ti and 29Ti because Karpenter rejects them.
func sizeRules() []schemaRule {
	var rules []schemaRule
	for _, sizes := range [][2]string{
		{"1Gi", "0Gi"}, {"59000Gi", "59001Gi"}, {"9999Gi", "Gi"}, {"1G", "0G"}, {"64000G", "64001G"}, {"1Ti", "Ti"}, {"18Ti", "58Ti"},
		{"29Ti", "0Ti"}, {"57Ti", "64Ti"}, {"1T", "T"}, {"59T", "65T"}, {"64T", "0T"}, {"20Gi", "20"}, {"20Gi", "20Mi"}, {"20Gi", "1.5Gi"}, {"20Gi", "020Gi"},
	} {
		rules = append(rules, schemaRule{sizes[0] + " and not " + sizes[1], disk("volumeSize: " + sizes[0]), disk(`volumeSize: "` + sizes[1] + `"`), "volumeSize"})
	}
	return rules
}

func testEC2NodeClassDefaults(t *testing.T, s *server) {
	for _, test := range []struct{ name, given, want string }{
		{"all", `{}`, `{httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}`},
		{"each", ec2(`metadataOptions: {}`), `{httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}`},
		{"the rest", ec2(`metadataOptions: {httpPutResponseHopLimit: 2, httpEndpoint: disabled}`), `{httpEndpoint: disabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			class := merged(t, goodEC2Class, test.given)
			if err := s.Create(t.Context(), class, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			want := parse(t, `{role: nodes, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{tags: {cluster: c}}], securityGroupSelectorTerms: [{tags: {cluster: c}}], metadataOptions: `+test.want+`}`)
			if diff := cmp.Diff(want, class.Object["spec"], integersAlike); diff != "" {
				t.Errorf("stored spec (-want +got):\n%s", diff)
			}
		})
	}
}

// integersAlike treats integers from YAML and from JSON as equal.
var integersAlike = cmp.FilterValues(func(a, b any) bool { return number(a) && number(b) },
	cmp.Comparer(func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }))

func number(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

const fullEC2Class = `
metadata: {name: round-trip}
spec:
  role: null
  instanceProfile: p
  amiFamily: AL2023
  amiSelectorTerms: [{name: "a*", owner: self}, {tags: {a: "*"}}, {id: ami-1}, {ssmParameter: /a}]
  subnetSelectorTerms: [{id: subnet-1}, {tags: {a: b}}]
  securityGroupSelectorTerms: [{id: sg-1}, {name: default}, {tags: {a: b}}]
  capacityReservationSelectorTerms: [{id: cr-1}, {tags: {a: b}, ownerID: "012345678901", instanceMatchCriteria: open}]
  placementGroupSelector: {name: pg}
  userData: "#!/bin/sh\n"
  tags: {a: b}
  blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 1024Gi, volumeType: gp3, iops: 3000, throughput: 125, encrypted: true, deleteOnTermination: true, kmsKeyID: k, snapshotID: s, volumeInitializationRate: 100}}]
  instanceStorePolicy: RAID0
  networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}]
  detailedMonitoring: true
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: enabled, httpPutResponseHopLimit: 2, httpTokens: optional}
  connectionTracking: {tcpEstablishedTimeout: 60, udpStreamTimeout: 60, udpTimeout: 30}
  cpuOptions: {nestedVirtualization: enabled}
  associatePublicIPAddress: false
  ipPrefixCount: 1
  context: c
  kubelet:
    clusterDNS: [10.0.0.10]
    maxPods: 29
    podsPerCore: 4
    systemReserved: {cpu: 100m}
    kubeReserved: {memory: 0.5Gi}
    evictionHard: {memory.available: 5%}
    evictionSoft: {memory.available: 10%}
    evictionSoftGracePeriod: {memory.available: 90s}
    evictionMaxPodGracePeriod: 60
    imageGCHighThresholdPercent: 80
    imageGCLowThresholdPercent: 60
    cpuCFSQuota: true
    topologyManagerPolicy: best-effort
    memorySwap: {swapBehavior: LimitedSwap}
    registryPullQPS: 20
`

// The Go types declare every field that the definition keeps. Classes are written with patches computed from
// these types, and such a patch does not change the text of the spec.
func testEC2NodeClassRoundTrip(t *testing.T, s *server) {
	stored := s.create(t, goodEC2Class, fullEC2Class)
	if diff := cmp.Diff(merged(t, goodEC2Class, fullEC2Class).Object["spec"], stored.Object["spec"], integersAlike); diff != "" {
		t.Errorf("stored spec (-given +stored):\n%s", diff)
	}
	class := &awsv1.EC2NodeClass{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), class); err != nil {
		t.Fatal(err)
	}
	before := class.DeepCopy()
	controllerutil.AddFinalizer(class, awsv1.FinalizerTermination)
	if err := s.Patch(t.Context(), class, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	after := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass"}}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), after); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(after.GetFinalizers(), awsv1.FinalizerTermination) {
		t.Errorf("finalizers are %v, want the one that was added", after.GetFinalizers())
	}
	if diff := cmp.Diff(stored.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("spec after a patch (-before +after):\n%s", diff)
	}
	// Full updates also keep every field, but not every spelling.
	if err := s.Update(t.Context(), class, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	updated := asMap(t, class)
	if diff := cmp.Diff(fieldsOf(stored.Object["spec"]), fieldsOf(updated["spec"])); diff != "" {
		t.Errorf("fields after an update (-before +after):\n%s", diff)
	}
	controllerutil.RemoveFinalizer(class, awsv1.FinalizerTermination)
	if err := s.Patch(t.Context(), class, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
}

func asMap(t *testing.T, class *awsv1.EC2NodeClass) map[string]any {
	t.Helper()
	data, err := json.Marshal(class)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

// fieldsOf returns the value with all leaves replaced by true.
func fieldsOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for key, child := range value {
			fields[key] = fieldsOf(child)
		}
		return fields
	case []any:
		var all []any
		for _, child := range value {
			all = append(all, fieldsOf(child))
		}
		return all
	}
	return true
}

func testEC2NodeClassStatus(t *testing.T, s *server) {
	stored := s.create(t, goodEC2Class, `metadata: {name: status}`)
	class := &awsv1.EC2NodeClass{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), class); err != nil {
		t.Fatal(err)
	}
	class.Status = awsv1.EC2NodeClassStatus{
		Subnets:        []awsv1.Subnet{{ID: "subnet-1", Zone: "eu-west-1a", ZoneID: "euw1-az1"}},
		SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1", Name: "n"}},
		AMIs: []awsv1.AMI{{ID: "ami-1", Name: "n", Deprecated: true, Requirements: []corev1.NodeSelectorRequirement{
			{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}}},
		CapacityReservations: []awsv1.CapacityReservation{{ID: "cr-1", AvailabilityZone: "eu-west-1a", InstanceType: "m7g.large",
			OwnerID: "012345678901", InstanceMatchCriteria: "open"}},
		InstanceProfile: "p",
	}
	for _, condition := range []string{awsv1.ConditionAMIsReady, awsv1.ConditionSubnetsReady, awsv1.ConditionSecurityGroupsReady,
		awsv1.ConditionInstanceProfileReady, awsv1.ConditionPlacementGroupReady, awsv1.ConditionValidationSucceeded} {
		if class.Condition(status.ConditionReady).IsTrue() {
			t.Errorf("Ready is True before %s", condition)
		}
		class.StatusConditions().SetTrue(condition)
	}
	if !class.Condition(status.ConditionReady).IsTrue() {
		t.Errorf("conditions are %+v, want Ready to be True", class.Status.Conditions)
	}
	want := class.Status.DeepCopy()
	want.CapacityReservations[0].State, want.CapacityReservations[0].ReservationType = "active", "default"
	if err := s.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), class); err != nil {
		t.Fatal(err)
	}
	for i := range want.Conditions {
		want.Conditions[i].LastTransitionTime = class.Status.Conditions[i].LastTransitionTime // stored with a resolution of one second
	}
	if diff := cmp.Diff(*want, class.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// One definition of NodePools serves all providers: the keys in the rule of a provider equal its well-known
// labels.
func TestGuardedLabelsAreTheVocabulary(t *testing.T) {
	text, err := crds.Files.ReadFile("karpenter.sh_nodepools.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition := strings.Join(strings.Fields(string(text)), " ")
	for _, label := range awsv1.WellKnownLabels() {
		if named := strings.Contains(definition, "''"+label+"''") || strings.Contains(definition, "'"+label+"'"); named != strings.HasPrefix(label, awsv1.Group+"/") {
			t.Errorf("%s: contained in the definition of NodePools: %t", label, named)
		}
	}
	if guarded, known := strings.Count(definition, "'"+awsv1.Group+"/"), len(awsv1.WellKnownLabels())-1; guarded != 4*known {
		t.Errorf("the definition of NodePools contains %d labels of %s, want %d twice in each of two versions", guarded, awsv1.Group, known)
	}
}
