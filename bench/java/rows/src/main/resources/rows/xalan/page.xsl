<?xml version="1.0" encoding="UTF-8"?>
<!-- Every order as a table in HTML, with its customer, who is found by a key. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" encoding="UTF-8" indent="yes"/>
  <xsl:key name="customer" match="customer" use="@id"/>

  <xsl:template match="/shop">
    <html>
      <head><title>Orders</title></head>
      <body>
        <xsl:apply-templates select="order">
          <xsl:sort select="@day" data-type="number"/>
          <xsl:sort select="@id"/>
        </xsl:apply-templates>
      </body>
    </html>
  </xsl:template>

  <xsl:template match="order">
    <h2><xsl:number value="position()" format="1. "/><xsl:value-of select="key('customer', @customer)/name"/></h2>
    <table id="{@id}">
      <xsl:apply-templates select="line"/>
    </table>
    <xsl:apply-templates select="note"/>
  </xsl:template>

  <xsl:template match="line">
    <tr>
      <xsl:if test="@quantity &gt; 10"><xsl:attribute name="class">many</xsl:attribute></xsl:if>
      <td><xsl:value-of select="translate(@product, 'p', 'P')"/></td>
      <td><xsl:value-of select="@quantity"/></td>
      <td><xsl:value-of select="format-number(@quantity * @cents div 100, '#,##0.00')"/></td>
    </tr>
  </xsl:template>

  <xsl:template match="note"><p><xsl:apply-templates/></p></xsl:template>
  <xsl:template match="em"><b><xsl:value-of select="."/></b></xsl:template>
</xsl:stylesheet>
