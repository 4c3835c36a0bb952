package awssim

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// policy denies launches unless one of the values matches a condition key, as organizations do with a Deny on
// ec2:RunInstances under StringNotLike.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html#amazonec2-policy-keys
type policy struct {
	key    string
	values []string
}

// The condition keys of launches that policies can name.
const (
	ConditionEncrypted    = "ec2:Encrypted"          // true or false, of each volume
	ConditionTokens       = "ec2:MetadataHttpTokens" // required or optional
	ConditionInstanceType = "ec2:InstanceType"
)

// DenyUnless has launches denied, RunInstances and those of fleets, for which a condition key has none of the values; "*" stands
// for any characters. Without values the policies about the key are gone.
func (c *Cloud) DenyUnless(key string, values ...string) error {
	if !slices.Contains([]string{ConditionEncrypted, ConditionTokens, ConditionInstanceType}, key) {
		return fmt.Errorf("condition key %q: must be %s, %s or %s", key, ConditionEncrypted, ConditionTokens, ConditionInstanceType)
	}
	c.locked(func(time.Time) {
		c.policies = slices.DeleteFunc(c.policies, func(p policy) bool { return p.key == key })
		if len(values) > 0 {
			c.policies = append(c.policies, policy{key, values})
		}
	})
	return nil
}

// policyDenies says whether a policy forbids a launch. The lock is held.
func (c *Cloud) policyDenies(o *override) bool {
	for _, p := range c.policies {
		for _, value := range c.conditionOf(o, p.key) {
			if !slices.ContainsFunc(p.values, func(pattern string) bool { return wildcard(pattern, value) }) {
				return true
			}
		}
	}
	return false
}

// conditionOf are the values that a condition key has in a launch: several where the key is of volumes, each of which is
// checked. A volume that the launch does not name is encrypted as the image's snapshot is, which none is here.
func (c *Cloud) conditionOf(o *override, key string) []string {
	switch key {
	case ConditionInstanceType:
		return []string{o.name}
	case ConditionTokens:
		return []string{o.spec.metadata["HttpTokens"]}
	}
	imageID := o.image
	defaultTo(&imageID, o.spec.image)
	encrypted := map[string]bool{}
	if i := c.image(imageID); i != nil {
		for _, d := range i.devices {
			encrypted[d.name] = false
		}
	}
	for _, d := range o.spec.devices {
		encrypted[d.name] = d.encrypted
	}
	var values []string
	for _, name := range sortedKeys(encrypted) {
		values = append(values, strconv.FormatBool(encrypted[name]))
	}
	return values
}
