<?xml version="1.0" encoding="UTF-8"?>
<!-- The same document without small lines and notes, and with each order's sum. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="xml" encoding="UTF-8"/>
  <xsl:strip-space elements="*"/>

  <xsl:template match="@*|node()">
    <xsl:copy><xsl:apply-templates select="@*|node()"/></xsl:copy>
  </xsl:template>

  <xsl:template match="order">
    <xsl:copy>
      <xsl:apply-templates select="@*"/>
      <xsl:attribute name="pieces"><xsl:value-of select="sum(line/@quantity)"/></xsl:attribute>
      <xsl:attribute name="before"><xsl:value-of select="count(preceding-sibling::order[@customer = current()/@customer])"/></xsl:attribute>
      <xsl:apply-templates select="line"/>
    </xsl:copy>
  </xsl:template>

  <xsl:template match="line[@quantity &lt; 3]"/>
</xsl:stylesheet>
