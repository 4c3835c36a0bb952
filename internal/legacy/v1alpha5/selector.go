package v1alpha5

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// These labels of Provisioners selected subnets and security groups in v1alpha3, and the launch template.
const (
	labelLaunchTemplate = "node.k8s.aws/launch-template-name"
	labelSubnetName     = "node.k8s.aws/subnet-name"
	labelSubnetTagKey   = "node.k8s.aws/subnet-tag-key"
	labelGroupName      = "node.k8s.aws/security-group-name"
	labelGroupTagKey    = "node.k8s.aws/security-group-tag-key"
)

var classLabels = [...]string{labelLaunchTemplate, labelSubnetName, labelSubnetTagKey, labelGroupName, labelGroupTagKey}

// anyValue matches any value of a tag.
const anyValue = "*"

// mostTerms is the maximum number of terms in a selector of a class.
const mostTerms = 30

// idKeys lists the keys of a selector that contain IDs.
var idKeys = [...]string{"aws-ids", "aws::ids"}

// selector maps keys to values: keys are ANDed, values of one key are ORed.
type selector struct {
	ids  []string
	tags []map[string]string // one per combination of values; none if there are more than a class may have
	// combinations is the number of combinations, at most manyTerms.
	combinations int
}

// manyTerms is the largest number of terms that is counted exactly.
const manyTerms = 1 << 20

// times returns a product of counts, at most manyTerms.
func times(a, b int) int { return min(min(a, manyTerms)*min(b, manyTerms), manyTerms) }

// readSelector parses a selector. It returns nil if the selector is absent or empty.
func (c *cloudPart) readSelector(name string) *selector {
	pairs := c.pairs(name)
	if len(pairs) == 0 {
		return nil
	}
	s := &selector{}
	keys := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		values := split(pairs[key])
		switch {
		case slices.Contains(idKeys[:], key):
			s.ids = append(s.ids, values...)
		case len(values) == 0:
			keys[key] = []string{anyValue}
			c.notes.add(Repaired, c.at(name), "", "the value of %s is empty; treated as %s", key, anyValue)
		default:
			keys[key] = values
		}
	}
	slices.Sort(s.ids)
	if len(keys) > 0 {
		s.combinations = 1
	}
	for _, values := range keys {
		s.combinations = times(s.combinations, len(values))
	}
	if s.combinations <= mostTerms { // otherwise fits reports it, and they are not expanded
		s.tags = product(keys)
	}
	if len(s.ids) > 0 && len(keys) > 0 {
		c.notes.add(Changed, c.at(name), "", "contains IDs and %s; only the IDs are used", words(slices.Sorted(maps.Keys(keys))))
		s.tags, s.combinations = nil, 0
	}
	return s
}

// split returns the values of a list that is separated by commas.
func split(text string) []string {
	var values []string
	seen := map[string]bool{"": true}
	for value := range strings.SplitSeq(text, ",") {
		if value = strings.TrimSpace(value); !seen[value] {
			seen[value] = true
			values = append(values, value)
		}
	}
	return values
}

// product returns all combinations of one value per key, in a fixed order, and none without keys.
func product(keys map[string][]string) []map[string]string {
	if len(keys) == 0 {
		return nil
	}
	combinations := []map[string]string{{}}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		var longer []map[string]string
		for _, combination := range combinations {
			for _, value := range keys[key] {
				next := maps.Clone(combination)
				next[key] = value
				longer = append(longer, next)
			}
		}
		combinations = longer
	}
	return combinations
}

// fits reports whether a selector has at most as many terms as a class may have.
func (c *cloudPart) fits(name string, terms int) bool {
	if terms <= mostTerms {
		return true
	}
	amount := strconv.Itoa(terms)
	if terms >= manyTerms {
		amount = "more than a million"
	}
	c.impossible(c.at(name), "expands to %s terms, want at most %d; use fewer combinations of values", amount, mostTerms)
	return false
}

// readSelectors reads the subnets and security groups.
func (c *cloudPart) readSelectors() {
	if c.version == V1Alpha3 {
		c.selectByLabels()
		return
	}
	c.selectSubnets(c.selectorOrDefault("subnetSelector"))
	c.selectGroups(c.selectorOrDefault("securityGroupSelector"))
	c.tellGroups(c.at("securityGroupSelector"))
}

// selectSubnets creates the terms of a selector, and none for nil.
func (c *cloudPart) selectSubnets(s *selector) {
	if s == nil {
		return
	}
	for _, tags := range s.tags {
		c.spec.SubnetSelectorTerms = append(c.spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{Tags: tags})
	}
	for _, id := range s.ids {
		c.spec.SubnetSelectorTerms = append(c.spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: id})
	}
	c.tellTerms("subnetSelector", s.combinations+len(s.ids))
}

// selectGroups does the same for security groups.
func (c *cloudPart) selectGroups(s *selector) {
	if s == nil {
		return
	}
	for _, tags := range s.tags {
		c.spec.SecurityGroupSelectorTerms = append(c.spec.SecurityGroupSelectorTerms, awsv1.SecurityGroupSelectorTerm{Tags: tags})
	}
	for _, id := range s.ids {
		c.spec.SecurityGroupSelectorTerms = append(c.spec.SecurityGroupSelectorTerms, awsv1.SecurityGroupSelectorTerm{ID: id})
	}
	c.tellTerms("securityGroupSelector", s.combinations+len(s.ids))
}

func (c *cloudPart) tellTerms(name string, terms int) {
	if c.fits(name, terms) && terms > 1 {
		c.notes.add(Carried, c.at(name), "EC2NodeClass spec."+name+"Terms", "the values separated by commas result in %d terms", terms)
	}
}

// selectorOrDefault returns the selector, or its former default: everything of the cluster.
func (c *cloudPart) selectorOrDefault(name string) *selector {
	if s := c.readSelector(name); s != nil {
		return s
	}
	to := "EC2NodeClass spec." + name + "Terms"
	if c.cluster == "" {
		c.impossible(c.at(name), "is required, because the cluster name, which the tag of the default selector contains, is unknown")
		return nil
	}
	effect := Repaired
	if c.implied() {
		effect = Defaulted
	}
	c.notes.add(effect, c.at(name), to, "is not set; set to select resources with the tag %s", c.clusterTag())
	return &selector{tags: []map[string]string{{c.clusterTag(): anyValue}}, combinations: 1}
}

func (c *cloudPart) clusterTag() string { return awsv1.TagClusterPrefix + c.cluster }

// selectByLabels implements v1alpha3: everything that has the cluster's tag and matches a label about the name or a
// further tag.
func (c *cloudPart) selectByLabels() {
	if c.labels[labelLaunchTemplate] != "" {
		c.impossible("spec.labels["+labelLaunchTemplate+"]", "custom launch templates are not supported; write an equivalent EC2NodeClass "+
			"(amiSelectorTerms, userData, securityGroupSelectorTerms, instanceProfile, blockDeviceMappings)")
	}
	if c.cluster == "" {
		c.impossible("spec.cluster.name", "is required, because subnets and security groups are selected by a tag that contains it")
		return
	}
	subnets := c.tagsByLabels("subnetSelectorTerms", labelSubnetName, labelSubnetTagKey)
	groups := c.tagsByLabels("securityGroupSelectorTerms", labelGroupName, labelGroupTagKey)
	c.spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: subnets}}
	c.spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: groups}}
	c.tellGroups("spec.cluster.name")
}

func (c *cloudPart) tagsByLabels(terms, name, tagKey string) map[string]string {
	to := "EC2NodeClass spec." + terms
	c.notes.add(Defaulted, "spec.cluster.name", to, "resources must have the tag %s", c.clusterTag())
	tags := map[string]string{c.clusterTag(): anyValue}
	if value := c.labels[name]; value != "" {
		tags["Name"] = value
		c.notes.add(Carried, fmt.Sprintf("spec.labels[%s]", name), to, "resources must have this value in the tag Name")
	}
	if key := c.labels[tagKey]; key != "" {
		tags[key] = anyValue
		c.notes.add(Carried, fmt.Sprintf("spec.labels[%s]", tagKey), to, "resources must have this tag, with any value")
	}
	return tags
}

// tellGroups adds a note that the cluster's security groups are no longer filtered.
func (c *cloudPart) tellGroups(field string) {
	if !c.implied() {
		return
	}
	for _, term := range c.spec.SecurityGroupSelectorTerms {
		for key := range term.Tags {
			if strings.HasPrefix(key, awsv1.TagClusterPrefix) {
				c.notes.add(Changed, field, "EC2NodeClass spec.securityGroupSelectorTerms",
					"all selected security groups are used; before, only one of those with the tag %s was used", key)
				return
			}
		}
	}
}
