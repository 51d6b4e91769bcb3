//layout:floor=top
package siege
