package v1alpha5

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// cloudPart is the AWS configuration in an object: the spec of an AWSNodeTemplate, a Provisioner's spec.provider, or,
// in v1alpha3, labels and spec.cluster. It is translated to one class or to several, which differ in name and kubelet
// settings.
type cloudPart struct {
	*section
	origin
	settings Settings
	spec     awsv1.EC2NodeClassSpec
	// restrictions are the requirements on nodes that follow from tags of the selected images.
	restrictions []karpv1.Requirement
	// broken means that no class can be created. A note contains the reason.
	broken bool
}

// origin describes where a cloud part comes from.
type origin struct {
	// version is that of the Provisioner that contains it, empty for an AWSNodeTemplate.
	version     string
	provisioner string
	// cluster is the name of the cluster, empty if unknown.
	cluster string
	// labels are those of a Provisioner, which contain AWS settings in v1alpha3.
	labels map[string]string
}

// implied reports whether the part is older than AWSNodeTemplates, when many settings were derived from the cluster's
// name.
func (o origin) implied() bool { return o.version != "" }

// old reports whether the part is of v1alpha3 or v1alpha4.
func (o origin) old() bool { return o.version == V1Alpha3 || o.version == V1Alpha4 }

func (c *cloudPart) impossible(field, reason string, args ...any) {
	c.broken = true
	c.notes.add(Impossible, field, "", reason, args...)
}

// readCloudPart returns the AWS configuration in a section. It reads all of its fields.
func readCloudPart(s *section, from origin, settings Settings) *cloudPart {
	c := &cloudPart{section: s, origin: from, settings: settings}
	c.text("apiVersion")
	c.text("kind")
	c.value("capacityTypes") // they belong to the Provisioner, see readCloud
	if c.text("launchTemplate") != "" {
		c.impossible(c.at("launchTemplate"), "custom launch templates are not supported; write an equivalent EC2NodeClass "+
			"(amiSelectorTerms, userData, securityGroupSelectorTerms, instanceProfile, blockDeviceMappings)")
		return c // it excluded almost everything else
	}
	c.readSelectors()
	c.readImages()
	c.readProfile()
	c.readTags()
	c.readMetadataOptions()
	c.spec.BlockDeviceMappings = append(c.readDisks(), c.spec.BlockDeviceMappings...)
	c.spec.DetailedMonitoring = c.flag("detailedMonitoring")
	c.spec.UserData = c.optional("userData")
	c.spec.Context = c.optional("context")
	c.rest()
	return c
}

// optional returns an unmodified text, or nil if it is absent.
func (c *cloudPart) optional(name string) *string {
	switch value := c.value(name).(type) {
	case nil:
		return nil
	case string:
		return &value
	}
	c.mistyped(name, "a string")
	return nil
}

// class returns a class of the part, or nil if none can be created.
func (c *cloudPart) class(name string, kubelet *awsv1.KubeletConfiguration, settings Settings) *awsv1.EC2NodeClass {
	if c == nil || c.broken {
		return nil
	}
	class := &awsv1.EC2NodeClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: awsv1.GroupVersion.String(), Kind: awsv1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       *c.spec.DeepCopy(),
	}
	class.Spec.Kubelet = limitedTo(kubelet.DeepCopy(), settings.MaxPods)
	return class
}

func (c *cloudPart) readProfile() {
	profile := c.text("instanceProfile")
	const to = "EC2NodeClass spec.instanceProfile"
	switch {
	case profile != "":
	case c.version == V1Alpha3 && c.cluster != "":
		profile = "KarpenterNodeInstanceProfile-" + c.cluster
		c.notes.add(Defaulted, "spec.cluster.name", to, "the instance profile is always %s in v1alpha3", profile)
	case c.settings.DefaultInstanceProfile != "":
		profile = c.settings.DefaultInstanceProfile
		c.notes.add(Defaulted, c.at("instanceProfile"), to, "is not set; set to %s, the value of the setting aws.defaultInstanceProfile", profile)
	default:
		c.impossible(c.at("instanceProfile"), "is required, because the setting aws.defaultInstanceProfile is unknown; set one of the two")
		return
	}
	c.spec.InstanceProfile = &profile
}

// reservedTags lists keys that users cannot set, or could not set. Entries that end in a slash are prefixes.
var reservedTags = [...]string{
	"kubernetes.io/cluster/", "karpenter.sh/provisioner-name", "karpenter.sh/managed-by",
	awsv1.TagCluster, awsv1.TagNodePool, awsv1.TagNodeClaim, awsv1.TagNodeClass,
}

func reserved(key string) bool {
	return slices.ContainsFunc(reservedTags[:], func(tag string) bool {
		return key == tag || strings.HasSuffix(tag, "/") && strings.HasPrefix(key, tag)
	})
}

func (c *cloudPart) readTags() {
	tags := c.impliedTags()
	if len(c.settings.Tags) > 0 {
		c.notes.add(Defaulted, c.at("tags"), "EC2NodeClass spec.tags", "the setting aws.tags applies to all resources: %s",
			words(slices.Sorted(maps.Keys(c.settings.Tags))))
	}
	for _, key := range slices.Sorted(maps.Keys(c.settings.Tags)) {
		if key == "" || reserved(key) {
			c.notes.add(Repaired, c.at("tags"), "", "the setting aws.tags contains %q, a tag that only the controller sets; omitted", key)
			continue
		}
		tags[key] = c.settings.Tags[key]
	}
	own := c.pairs("tags")
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if key == "" || reserved(key) {
			c.notes.add(Repaired, c.at("tags["+key+"]"), "", "is a tag that only the controller sets; omitted")
			continue
		}
		tags[key] = own[key]
	}
	if len(tags) > 0 {
		c.spec.Tags = tags
	}
}

// impliedTags returns the tags that instances had regardless of the object, and that IAM policies may use.
func (c *cloudPart) impliedTags() map[string]string {
	if !c.implied() || c.cluster == "" {
		return map[string]string{}
	}
	name := "karpenter.sh/cluster/" + c.cluster + "/provisioner/" + c.provisioner
	if c.old() {
		name = "Karpenter/" + c.cluster
	}
	c.notes.add(Defaulted, "spec", "EC2NodeClass spec.tags", "instances have the tags Name and karpenter.sh/cluster/%s", c.cluster)
	return map[string]string{awsv1.TagName: name, "karpenter.sh/cluster/" + c.cluster: "owned"}
}

// hopLimit is the former hop limit for tokens of the instance metadata service, which includes pods.
const hopLimit = int64(2)

func (c *cloudPart) readMetadataOptions() {
	options := &awsv1.MetadataOptions{
		HTTPEndpoint: new(awsv1.Enabled), HTTPProtocolIPv6: new(awsv1.Disabled), HTTPPutResponseHopLimit: new(hopLimit),
		HTTPTokens: new(awsv1.HTTPTokensRequired),
	}
	c.spec.MetadataOptions = options
	written := c.child("metadataOptions")
	if written == nil || !written.has("httpPutResponseHopLimit") {
		c.notes.add(Defaulted, c.at("metadataOptions"), "EC2NodeClass spec.metadataOptions",
			"is not set; set to the former defaults: enabled, no IPv6, tokens required and a hop limit of 2; with 1, the current default, pods get no tokens")
	}
	if written == nil {
		return
	}
	for name, field := range map[string]**string{
		"httpEndpoint": &options.HTTPEndpoint, "httpProtocolIPv6": &options.HTTPProtocolIPv6, "httpTokens": &options.HTTPTokens,
	} {
		if text := written.text(name); text != "" {
			*field = &text
		}
	}
	if hops := written.whole("httpPutResponseHopLimit"); hops != nil {
		options.HTTPPutResponseHopLimit = hops
	}
	written.rest()
}

// template is one AWSNodeTemplate.
type template struct {
	name, version string
	notes         *notes
	cloud         *cloudPart
	restrictions  []karpv1.Requirement
	settings      Settings
	// claimed means that a Provisioner has determined the kubelet settings of the class with the template's name.
	claimed bool
	kubelet *awsv1.KubeletConfiguration
}

func (w *inputSet) readTemplate(object *unstructured.Unstructured) *template {
	t := &template{name: object.GetName(), version: WrittenVersion(object), notes: &notes{}, settings: w.settings}
	if w.settings.Kwok {
		t.notes.add(Changed, "spec", "", "applies to AWS only, and nodes are simulated; ignored")
		return t
	}
	fields, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		t.notes.add(Repaired, "spec", "", "is not an object; treated as empty")
	}
	t.cloud = readCloudPart(newSection("spec", fields, t.notes), origin{cluster: w.settings.ClusterName}, w.settings)
	t.restrictions = t.cloud.restrictions
	return t
}

func (t *template) result() Result {
	r := Result{Kind: KindAWSNodeTemplate, Name: t.name, Version: t.version, Unused: !t.claimed, Notes: t.notes.sorted()}
	if class := t.cloud.class(t.name, t.kubelet, t.settings); class != nil {
		r.Classes = []*awsv1.EC2NodeClass{class}
	}
	return r
}

// readCloud finds the AWS configuration of a Provisioner: by name, inline, or implied.
func (p *provisioner) readCloud(spec *section) {
	cluster, provider, ref := spec.child("cluster"), spec.child("provider"), spec.child("providerRef")
	if provider != nil && ref == nil {
		p.capacityTypes = provider.texts("capacityTypes")
	}
	if p.settings.Kwok {
		p.dropCloud(provider, ref)
		return
	}
	inner := cluster
	if provider != nil && provider.has("cluster") {
		inner = provider.child("cluster")
	}
	from := origin{version: p.version, provisioner: p.name, cluster: p.clusterName(inner), labels: newSection("spec", spec.values, &notes{}).pairs("labels")}
	if ref != nil {
		if provider != nil {
			p.notes.add(Repaired, "spec.provider", "", "is mutually exclusive with spec.providerRef, which is used; omitted")
		}
		p.readRef(ref)
		return
	}
	if provider == nil {
		provider = newSection("spec.provider", map[string]any{}, p.notes)
		if p.version == V1Alpha5 {
			p.notes.add(Repaired, "spec.providerRef", "", "is required if provider is not set; treated as an empty provider")
		}
	}
	p.inline = readCloudPart(provider, from, p.settings)
}

// dropCloud removes settings that have no meaning for simulated machines. Capacity types are kept.
func (p *provisioner) dropCloud(provider, ref *section) {
	for _, part := range []*section{provider, ref} {
		if part != nil {
			p.notes.add(Changed, part.path, "", "applies to AWS only, and nodes are simulated; omitted")
		}
	}
}

func (p *provisioner) clusterName(cluster *section) string {
	if cluster == nil {
		return p.settings.ClusterName
	}
	name := cluster.text("name")
	cluster.text("endpoint")
	cluster.text("caBundle")
	cluster.rest()
	if set := p.settings.ClusterName; set != "" && name != "" && set != name {
		p.notes.add(Changed, cluster.at("name"), "", "is %s, want %s, the cluster that the controller manages (--cluster-name)", name,
			set)
		return set
	}
	p.notes.add(Changed, cluster.path, "", "the cluster's name, endpoint and certificates are settings of the controller (--cluster-name, --cluster-endpoint, --cluster-ca-bundle)")
	if name == "" {
		return p.settings.ClusterName
	}
	return name
}

func (p *provisioner) readRef(ref *section) {
	kind, group, name := ref.text("kind"), awsv1.Group, ref.text("name")
	if version := ref.text("apiVersion"); version != "" {
		group, _, _ = strings.Cut(version, "/")
	}
	ref.rest()
	p.refPath = ref.path
	if name == "" {
		p.notes.add(Impossible, ref.at("name"), "", "is required; set it to the name of an %s", KindAWSNodeTemplate)
	}
	if kind == "" || kind == KindAWSNodeTemplate {
		p.templateName = name
		return
	}
	p.foreign = &karpv1.NodeClassReference{Group: group, Kind: kind, Name: name}
	p.notes.add(Changed, ref.path, "spec.template.spec.nodeClassRef", "is not an %s; the object is used unchanged", KindAWSNodeTemplate)
	if p.kubelet != nil {
		p.notes.add(Impossible, "spec.kubeletConfiguration", "", "belongs to the node class; set it in %s %q", kind, name)
	}
}
