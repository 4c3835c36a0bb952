package migrate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// class repairs an EC2NodeClass.
func (r *repair) class() {
	r.clusterScoped()
	for _, kind := range []string{"subnet", "securityGroup", "ami"} {
		r.selector(kind+"Selector", kind)
		r.terms(kind + "SelectorTerms")
	}
	r.identity("role", ":role/")
	r.identity("instanceProfile", ":instance-profile/")
	if role, profile := r.find("spec.role"), r.find("spec.instanceProfile"); text(role) != "" && text(profile) != "" {
		take(r.root, "spec", "instanceProfile")
		r.repaired("spec.instanceProfile", "is mutually exclusive with spec.role, which creates an instance profile; omitted")
	}
	r.kubeletBlock()
	r.metadataOptions()
	r.devices()
	r.stringValues(r.find("spec.tags"), "spec.tags")
	r.ownTags()
	for _, field := range []string{"detailedMonitoring", "associatePublicIPAddress"} {
		r.boolean("spec." + field)
	}
	if take(r.root, "spec", "launchTemplate") != nil {
		r.anew = true
		r.note(Impossible, "spec.launchTemplate", "custom launch templates are not supported; "+
			"set amiSelectorTerms, userData, securityGroupSelectorTerms, instanceProfile and blockDeviceMappings instead")
	}
	if !r.beta {
		r.images()
	}
}

// selector converts a selector in the form of AWSNodeTemplates to terms.
func (r *repair) selector(field, kind string) {
	value := take(r.root, "spec", field)
	if value == nil {
		return
	}
	r.anew = true
	if r.find("spec."+kind+"SelectorTerms") != nil || empty(value) {
		r.note(Repaired, "spec."+field, "unknown field; omitted in favor of spec.%sSelectorTerms", kind)
		return
	}
	if value.Kind != yaml.MappingNode { // terms under another name
		put(r.root, value, "spec", kind+"SelectorTerms")
		r.note(Repaired, "spec."+field, "unknown field; moved to spec.%sSelectorTerms", kind)
		return
	}
	content, ok := plain(value).(map[string]any)
	if !ok {
		r.note(Impossible, "spec."+field, "contains values that are not valid JSON")
		return
	}
	spec, notes := v1alpha5.SelectorTerms(map[string]any{field: content})
	want, err := nodeOf(map[string]any{"subnet": spec.SubnetSelectorTerms, "securityGroup": spec.SecurityGroupSelectorTerms,
		"ami": spec.AMISelectorTerms}[kind])
	if err != nil {
		r.note(Impossible, "spec."+field, "%s", err)
		return
	}
	have, term := sequence(), mapping()
	have.HeadComment, value.HeadComment = value.HeadComment, ""
	set(term, value, "tags")
	have.Content = append(have.Content, term)
	if !empty(want) {
		put(r.root, reshape(have, want), "spec", kind+"SelectorTerms")
	}
	r.note(Repaired, "spec."+field, "is a field of AWSNodeTemplates; converted to spec.%sSelectorTerms", kind)
	for _, n := range notes {
		r.note(outcomes[n.Effect], n.Field, "%s", n.Reason)
	}
}

// terms repairs a list of terms.
func (r *repair) terms(field string) {
	path := "spec." + field
	list := r.find(path)
	if list != nil && list.Kind == yaml.MappingNode {
		member := clone(list)
		*list = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{member}}
		r.repaired(path, listOfOne)
	}
	var split []*yaml.Node
	for i, term := range members(list) {
		here := path + "[" + itoa(i) + "]"
		if term.Kind != yaml.MappingNode {
			split = append(split, term)
			continue
		}
		for _, name := range fields(term) { // tags that were written one level too high
			if known := []string{"tags", "id", "name", "owner", "alias", "ssmParameter"}; !slices.Contains(known, name) {
				value := take(term, name)
				quote(value)
				put(term, value, "tags", name)
				r.repaired(here+"."+name, "unknown field of a term; moved to tags")
			}
		}
		r.stringValues(at(term, "tags"), here+".tags")
		split = append(split, r.ids(term, here)...)
	}
	if list != nil {
		list.Content = split
	}
}

// ids creates a term for each ID, and separates an ID from other conditions: the API does not allow it next to tags,
// which are redundant then.
func (r *repair) ids(term *yaml.Node, path string) []*yaml.Node {
	id := at(term, "id")
	if owner := at(term, "owner"); quote(owner) {
		r.repaired(path+".owner", quotedOne, owner.Value)
	}
	if id == nil {
		return []*yaml.Node{term}
	}
	if len(term.Content) > 2 {
		for _, name := range fields(term) {
			if name != "id" {
				take(term, name)
			}
		}
		r.repaired(path, "id is mutually exclusive with all other fields of a term; these are omitted")
	}
	all := texts(id)
	if id.Kind == yaml.ScalarNode && strings.Contains(id.Value, ",") {
		all = strings.Split(id.Value, ",")
	}
	if len(all) < 2 {
		return []*yaml.Node{term}
	}
	r.repaired(path+".id", "contains several IDs, want one; split into one term for each ID")
	var terms []*yaml.Node
	for _, one := range all {
		single := mapping()
		set(single, scalar(strings.TrimSpace(one)), "id")
		terms = append(terms, single)
	}
	terms[0].HeadComment = term.HeadComment
	return terms
}

// identity replaces an ARN by its name.
func (r *repair) identity(field, mark string) {
	node := r.find("spec." + field)
	if _, path, found := strings.Cut(text(node), mark); found && strings.HasPrefix(node.Value, "arn:") {
		name := path[strings.LastIndexByte(path, '/')+1:]
		r.repaired("spec."+field, "is the ARN %s, want a name; set to %s", node.Value, name)
		node.Value = name
	}
}

// kubeletBlock reads the kubelet configuration under its name in Provisioners.
func (r *repair) kubeletBlock() {
	for _, from := range []string{"spec.kubeletConfiguration", "spec.kubeletConfig"} {
		if value := take(r.root, strings.Split(from, ".")...); value != nil {
			if r.find("spec.kubelet") == nil {
				r.repaired(from, "unknown field; moved to spec.kubelet")
				put(r.root, value, "spec", "kubelet")
			} else {
				r.repaired(from, "unknown field; omitted, because spec.kubelet is set")
			}
		}
	}
}

func (r *repair) metadataOptions() {
	r.number("spec.metadataOptions.httpPutResponseHopLimit")
	for _, field := range []string{"httpTokens", "httpEndpoint", "httpProtocolIPv6"} {
		node := r.find("spec.metadataOptions." + field)
		if node == nil || node.Kind != yaml.ScalarNode {
			continue
		}
		wanted := strings.ToLower(node.Value)
		if node.Tag == "!!bool" {
			wanted = map[string]map[string]string{"true": {"httpTokens": "required"}, "false": {"httpTokens": "optional"}}[wanted][field]
			if wanted == "" {
				wanted = map[bool]string{true: awsv1.Enabled, false: awsv1.Disabled}[strings.EqualFold(node.Value, "true")]
			}
		}
		if wanted != node.Value {
			r.repaired("spec.metadataOptions."+field, "is %s, want %s", node.Value, wanted)
			node.Value, node.Tag, node.Style = wanted, "!!str", 0
		}
	}
}

var gigabytes = regexp.MustCompile(`^([0-9]+)\s*(GB|GiB|gb|gi|G[iI]?b?)?$`)

// devices repairs the block device mappings.
func (r *repair) devices() {
	list := r.find("spec.blockDeviceMappings")
	for i, device := range members(list) {
		path := "spec.blockDeviceMappings[" + itoa(i) + "]"
		for _, field := range []string{"volumeSize", "volumeType", "encrypted", "deleteOnTermination", "iops",
			"throughput", "kmsKeyID", "kmsKeyId", "snapshotID", "snapshotId"} {
			if value := take(device, field); value != nil {
				put(device, value, "ebs", field)
				r.repaired(path+"."+field, "unknown field; moved to ebs")
			}
		}
		for _, right := range []string{"kmsKeyID", "snapshotID"} {
			wrong := strings.TrimSuffix(right, "ID") + "Id"
			if value := take(device, "ebs", wrong); value != nil {
				put(device, value, "ebs", right)
				r.repaired(path+".ebs."+wrong, "unknown field; moved to %s", right)
			}
		}
		size := at(device, "ebs", "volumeSize")
		if value := text(size); value != "" {
			if found := gigabytes.FindStringSubmatch(value); found != nil && !strings.HasSuffix(value, "Gi") && !strings.HasSuffix(value, "G") {
				unit := "Gi"
				if strings.EqualFold(found[2], "GB") {
					unit = "G"
				}
				*size = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: found[1] + unit, LineComment: size.LineComment}
				r.repaired(path+".ebs.volumeSize", "is %s, want a quantity with a unit; set to %s", value, size.Value)
			}
		}
		for _, field := range []string{"iops", "throughput"} {
			if node := at(device, "ebs", field); node != nil && node.Tag == "!!str" {
				if _, err := strconv.ParseInt(node.Value, 10, 64); err == nil {
					node.Tag, node.Style = "!!int", 0
					r.repaired(path+".ebs."+field, unquotedOne, node.Value)
				}
			}
		}
		for _, field := range []string{"encrypted", "deleteOnTermination"} {
			r.booleanAt(at(device, "ebs", field), path+".ebs."+field)
		}
	}
}

func (r *repair) boolean(path string) { r.booleanAt(r.find(path), path) }

// booleanAt converts a string to a boolean.
func (r *repair) booleanAt(node *yaml.Node, path string) {
	if node == nil || node.Tag != "!!str" {
		return
	}
	if value := strings.ToLower(node.Value); value == "true" || value == "false" {
		r.repaired(path, "is %q, want a boolean; set to %s", node.Value, value)
		node.Value, node.Tag, node.Style = value, "!!bool", 0
	}
}

// ownTags removes tags that only the provider sets.
func (r *repair) ownTags() {
	tags := r.find("spec.tags")
	for _, name := range fields(tags) {
		if v1alpha5.ReservedTag(name) {
			take(tags, name)
			r.repaired("spec.tags."+name, "is a tag that only the controller sets; omitted")
		}
	}
	prune(r.root, "spec", "tags")
}

// images adds what v1 requires about images.
func (r *repair) images() {
	terms, family := r.find("spec.amiSelectorTerms"), r.find("spec.amiFamily")
	for _, known := range awsv1.Families() {
		if strings.EqualFold(text(family), string(known)) && text(family) != string(known) {
			r.repaired("spec.amiFamily", "is %s, want %s", family.Value, known)
			family.Value = string(known)
		}
	}
	if alias := at(firstOf(terms), "alias"); alias != nil {
		if !strings.Contains(alias.Value, "@") {
			r.repaired("spec.amiSelectorTerms[0].alias", "is %[1]s, want a version after @; set to %[1]s@latest", alias.Value)
			alias.Value += "@latest"
		}
		if lower := strings.ToLower(alias.Value[:strings.IndexByte(alias.Value, '@')]) + alias.Value[strings.IndexByte(alias.Value,
			'@'):]; lower != alias.Value {
			r.repaired("spec.amiSelectorTerms[0].alias", "is %s, want %s", alias.Value, lower)
			alias.Value = lower
		}
		parts := awsv1.AMISelectorTerm{Alias: alias.Value}
		if of, _, ok := parts.AliasParts(); ok && family != nil && family.Value != string(of) && family.Value != string(awsv1.FamilyCustom) {
			r.repaired("spec.amiFamily", "is %s, and the family of the alias is %s; omitted", family.Value, of)
			take(r.root, "spec", "amiFamily")
		}
		return
	}
	if !empty(terms) || r.patch {
		return
	}
	switch value := text(family); value {
	case string(awsv1.FamilyCustom), "Ubuntu":
		r.note(Impossible, "spec.amiSelectorTerms", "is required, because the family %s has no default image", value)
	case "":
		r.note(Impossible, "spec.amiSelectorTerms", "is required; set it to a term such as alias: al2023@latest")
	default:
		term := mapping()
		set(term, scalar(strings.ToLower(value)+"@latest"), "alias")
		set(r.root, sequence(term), "spec", "amiSelectorTerms")
		r.repaired("spec.amiSelectorTerms", "is required in v1; set to %s@latest, the images of the family", strings.ToLower(value))
	}
}

// supported replaces images that do not exist for the cluster's version.
func (r *repair) supported(minor int) {
	alias := at(firstOf(r.find("spec.amiSelectorTerms")), "alias")
	if minor < v1alpha5.FirstWithoutAL2 || !strings.HasPrefix(text(alias), "al2@") {
		return
	}
	alias.Value = "al2023@latest"
	take(r.root, "spec", "amiFamily")
	r.anew = true
	r.note(Changed, "spec.amiSelectorTerms[0].alias", "no images of Amazon Linux 2 exist for Kubernetes 1.%d; set to al2023@latest", minor)
	if r.find("spec.userData") != nil {
		r.note(Advice, "spec.userData", "is written for Amazon Linux 2, where bootstrap.sh configures the kubelet; "+
			"Amazon Linux 2023 reads a NodeConfig (apiVersion node.eks.aws/v1alpha1) instead")
	}
}

func firstOf(list *yaml.Node) *yaml.Node {
	if all := members(list); len(all) > 0 {
		return all[0]
	}
	return nil
}
