package class

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

func annotated(key, value string) func(*awsv1.EC2NodeClass) {
	return func(c *awsv1.EC2NodeClass) { c.Annotations = map[string]string{key: value} }
}

func TestExamine(t *testing.T) {
	cluster := discovery.Facts{Name: "sandbox", Version: "1.36", Endpoint: "https://e", CABundle: "UEVN", ServiceCIDR: "10.100.0.0/16"}
	text := func(s string) *string { return &s }
	family := func(f awsv1.Family) *awsv1.Family { return &f }
	for _, test := range []struct {
		name    string
		change  func(*awsv1.EC2NodeClass)
		cluster func(*discovery.Facts)
		gate    bool
		want    string // status, reason, a part of the message
	}{
		{name: "nothing"},
		{name: "no range of services", cluster: func(f *discovery.Facts) { f.ServiceCIDR = "" }, want: "False ClusterCIDRResolutionFailed eks:DescribeCluster"},
		{name: "Bottlerocket needs no range", change: func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "bottlerocket@latest" },
			cluster: func(f *discovery.Facts) { f.ServiceCIDR = "" }},
		{name: "an expression", change: func(c *awsv1.EC2NodeClass) {
			pods := intstr.FromString("vcpus * 10")
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: &pods}
		}, want: "False KubeletExpressionsDisabled spec.kubelet.maxPods"},
		{name: "an expression with the gate on", gate: true, change: func(c *awsv1.EC2NodeClass) {
			pods := intstr.FromString("vcpus * 10")
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: &pods, SystemReserved: map[string]string{"cpu": "vcpus * 10", "memory": "1Gi"}}
		}},
		{name: "an expression that is wrong", gate: true, change: func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{KubeReserved: map[string]string{"memory": "11 * max_pod"}}
		}, want: "False KubeletExpressionInvalid spec.kubelet.kubeReserved.memory: \"11 * max_pod\" is neither a quantity such as 1Gi nor a " +
			"valid expression: 1:6: undeclared reference to 'max_pod'"},
		{name: "an expression of another type", gate: true, change: func(c *awsv1.EC2NodeClass) {
			pods := intstr.FromString("vcpus > 2")
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: &pods}
		}, want: "False KubeletExpressionInvalid the result is of type bool, want int or double"},
		{name: "an expression, and what is wrong in any case", change: func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{ClusterDNS: []string{"here"}, KubeReserved: map[string]string{"cpu": "vcpus * 10"}}
		}, want: "False InvalidKubeletConfiguration clusterDNS"},
		{name: "an annotation", change: func(c *awsv1.EC2NodeClass) {
			c.Annotations = map[string]string{awsv1.AnnotationPrefixDelegation: "yes"}
		}, want: "False InvalidAnnotation karpenter-go.github.io/prefix-delegation"},
		{name: "open reservations", change: annotated(awsv1.AnnotationOpenReservations, "True"),
			want: `False InvalidAnnotation metadata.annotations[karpenter-go.github.io/open-reservations]: is "True", want true or false`},
		{name: "sizes of volumes", change: annotated(awsv1.AnnotationVolumeSize, "/dev/xvda = 20 + 2 * vcpus;\n")},
		{name: "a size of another device", change: annotated(awsv1.AnnotationVolumeSize, "/dev/xvdb=20"),
			want: "False InvalidAnnotation names the device /dev/xvdb, and the class has the EBS volumes [/dev/xvda]"},
		{name: "a size that is no expression", change: annotated(awsv1.AnnotationVolumeSize, "/dev/xvda=20Gi"),
			want: "False InvalidAnnotation /dev/xvda=20Gi is no size in GiB nor an expression of it: 1:3: Syntax error"},
		{name: "a size of nothing", change: annotated(awsv1.AnnotationVolumeSize, "/dev/xvda=0"),
			want: "False InvalidAnnotation metadata.annotations[karpenter-go.github.io/volume-size]: /dev/xvda=0, want 1 GiB or more"},
		{name: "a size without a device", change: annotated(awsv1.AnnotationVolumeSize, "20 + vcpus"),
			want: `False InvalidAnnotation has "20 + vcpus", want one DEVICE=EXPRESSION`},
		{name: "two sizes of a device", change: annotated(awsv1.AnnotationVolumeSize, "/dev/xvda=20;/dev/xvda=30"),
			want: `False InvalidAnnotation has "/dev/xvda=30", want one DEVICE=EXPRESSION`},
		{name: "kubelet", change: func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{ClusterDNS: []string{"here"}}
		}, want: "False InvalidKubeletConfiguration clusterDNS"},
		{name: "Windows", change: func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "windows2022@latest" }},
		{name: "Windows with IPv6", change: func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "windows2022@latest" },
			cluster: func(f *discovery.Facts) { f.ServiceCIDR, f.IPv6 = "fd12::/108", true },
			want:    "False InvalidUserData spec.amiFamily: is Windows2022, and the cluster has IPv6"},
		{name: "no subnet", change: func(c *awsv1.EC2NodeClass) {
			c.StatusConditions().SetFalse(awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound, "none")
		}, want: "False DependenciesNotReady SubnetsReady"},
		{name: "images not known yet", change: func(c *awsv1.EC2NodeClass) { c.StatusConditions().SetUnknown(awsv1.ConditionAMIsReady) }, want: "Unknown DependenciesNotReady AMIsReady"},
		{name: "a tag of ours", change: func(c *awsv1.EC2NodeClass) {
			c.Spec.Tags = map[string]string{"a": "b", "kubernetes.io/cluster/other": "owned"}
		},
			want: "False TagValidationFailed kubernetes.io/cluster/other"},
		{name: "as many tags as there is room for", change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = manyTags(42); c.Spec.Tags["Name"] = "mine" }},
		{name: "a tag too many", change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = manyTags(43) }, want: "False TagValidationFailed has 43 tags"},
		{name: "a tag that gets too long", change: func(c *awsv1.EC2NodeClass) {
			c.Spec.Tags = map[string]string{"a": strings.Repeat("x", 256), "b": strings.Repeat("雲", 187) + "{{nodepool}}{{cluster}}"}
		}, want: "False TagValidationFailed spec.tags[b]: has up to 257 characters"},
		{name: "a value that is too long", change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"a": strings.Repeat("雲", 257)} },
			want: "False TagValidationFailed spec.tags[a]: has 257 characters, want 256 at most"},
		{name: "a key that is too long", change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{strings.Repeat("雲", 129): ""} },
			want: "False TagValidationFailed has 129 characters, want 128 at most"},
		{name: "a key that fits", change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{strings.Repeat("雲", 128): ""} }},
		{name: "a tag of AWS", change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"AWS:a": "b"} },
			want: "False TagValidationFailed spec.tags: AWS:a begins with aws:, which AWS reserves"},
		{name: "a tag that fits", change: func(c *awsv1.EC2NodeClass) {
			c.Spec.Tags = map[string]string{"b": strings.Repeat("雲", 186) + "{{nodepool}}{{cluster}}"}
		}},
		{name: "an annotation without effect", change: func(c *awsv1.EC2NodeClass) {
			c.Annotations = map[string]string{awsv1.AnnotationAutoRecovery: "off"}
		}, want: `False InvalidAnnotation metadata.annotations[karpenter-go.github.io/auto-recovery]: is "off", want default or disabled`},
		{name: "auto recovery off", change: func(c *awsv1.EC2NodeClass) {
			c.Annotations = map[string]string{awsv1.AnnotationAutoRecovery: "disabled"}
		}},
		{name: "user data", change: func(c *awsv1.EC2NodeClass) {
			c.Spec.UserData = text("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n")
		}, want: "False InvalidUserData spec.userData"},
		{name: "too much user data", change: func(c *awsv1.EC2NodeClass) { c.Spec.UserData = text("#!/bin/sh\n" + strings.Repeat("# long\n", 40000)) },
			want: "False UserDataSizeLimitExceeded 16384"},
		{name: "user data that fits compressed",
			change: func(c *awsv1.EC2NodeClass) { c.Spec.UserData = text("#!/bin/sh\n" + strings.Repeat("# long\n", 30000)) }},
		{name: "any text for Custom", change: func(c *awsv1.EC2NodeClass) {
			c.Spec.AMIFamily, c.Spec.UserData = family(awsv1.FamilyCustom), text("anything")
		}},
	} {
		class := awstest.Class(nil)
		for _, condition := range []string{awsv1.ConditionAMIsReady, awsv1.ConditionSubnetsReady, awsv1.ConditionSecurityGroupsReady,
			awsv1.ConditionInstanceProfileReady, awsv1.ConditionPlacementGroupReady} {
			class.StatusConditions().SetTrue(condition)
		}
		facts := cluster
		if test.change != nil {
			test.change(class)
		}
		if test.cluster != nil {
			test.cluster(&facts)
		}
		found := examine(class, facts, test.gate)
		if test.want == "" {
			if found != nil {
				t.Errorf("%s: found %+v, want nothing", test.name, found)
			}
			continue
		}
		want := strings.SplitN(test.want, " ", 3)
		switch {
		case found == nil:
			t.Errorf("%s: found is nil, want %s", test.name, test.want)
		case string(found.status) != want[0]:
			t.Errorf("%s: string(found.status) is %v, want %v, found %+v, want %s", test.name, string(found.status), want[0], found, test.want)
		case found.reason != want[1]:
			t.Errorf("%s: found.reason is %v, want %v, want %s", test.name, found.reason, want[1], test.want)
		case !strings.Contains(found.message, want[2]):
			t.Errorf("%s: found.message lacks %q, found %+v, want %s", test.name, want[2], found, test.want)
		}
	}
}

func manyTags(n int) map[string]string {
	tags := map[string]string{}
	for i := range n {
		tags[fmt.Sprintf("Kostenstelle-%d ä", i)] = "雲"
	}
	return tags
}
